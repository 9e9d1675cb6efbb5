export default (a: number) => a
export const after = 1
