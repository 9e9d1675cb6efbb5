export default function handler(req, res) { res.end() }
