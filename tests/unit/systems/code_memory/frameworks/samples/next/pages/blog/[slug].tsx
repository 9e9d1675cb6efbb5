export default function Post() { return <article /> }
