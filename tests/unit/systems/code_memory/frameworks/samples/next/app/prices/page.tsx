export const revalidate = 3600

export default async function PricesPage() { return <p /> }
