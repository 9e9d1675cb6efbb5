const express = require('express')
const orders = require('./routes/orders')
const { health } = require('./health')

const app = express()
app.use(express.json())
app.get('/health', health)
app.use('/api/v1', orders)
app.use('/carts', require('./routes/carts'))
app.set('trust proxy', true)

module.exports = app
