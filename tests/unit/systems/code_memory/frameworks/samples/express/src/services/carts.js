async function findCart(id) { return { id } }
module.exports = { findCart }
