const value = { a: 1 }
export { value }
export default value
