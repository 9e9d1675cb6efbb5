export default defineEventHandler(async (event) => listOrders(event))
