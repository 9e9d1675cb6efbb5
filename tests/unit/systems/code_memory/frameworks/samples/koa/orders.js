async function list(ctx) { ctx.body = [] }
async function remove(ctx) { ctx.status = 204 }
module.exports = { list, remove }
