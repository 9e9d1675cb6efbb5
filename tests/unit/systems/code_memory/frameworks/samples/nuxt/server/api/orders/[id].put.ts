export default defineEventHandler(async (event) => changeOrder(event))
