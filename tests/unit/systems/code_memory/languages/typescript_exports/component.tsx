export const Button = ({ label }: { label: string }) => <button>{label}</button>
export default function App() { return <Button label="é😀" /> }
