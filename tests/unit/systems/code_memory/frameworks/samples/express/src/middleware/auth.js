function requireUser(req, res, next) { next() }

module.exports = { requireUser }
