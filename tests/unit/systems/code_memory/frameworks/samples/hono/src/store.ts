export async function listOrders() { return [] }
export async function findOrder(id: string) { return id }
