import { findOrder } from '$lib/orders'
const titles = {}
export async function load({ params }) { return { order: await findOrder(params.id) } }
export const actions = { default: async ({ request }) => {} }
