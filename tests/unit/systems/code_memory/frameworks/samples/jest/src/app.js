const express = require('express')
const app = express()
app.get('/orders/:id', show)
app.post('/orders', create)
function show(req, res) {}
function create(req, res) {}
module.exports = app
