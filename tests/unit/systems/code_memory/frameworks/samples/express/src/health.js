exports.health = (req, res) => res.json({ ok: true })
