export default function Orders() { return <main>Orders</main> }
