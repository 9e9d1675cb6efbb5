async function create(body) { return body }
module.exports = { create }
