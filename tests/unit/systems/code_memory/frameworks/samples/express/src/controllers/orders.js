const cache = new Map()
function list(req, res) { res.json([]) }
function create(req, res) { res.status(201).end() }
function show(req, res) { res.json(cache.get('/orders/' + req.params.id)) }
function remove(req, res) { res.status(204).end() }
module.exports = { list, create, show, remove }
