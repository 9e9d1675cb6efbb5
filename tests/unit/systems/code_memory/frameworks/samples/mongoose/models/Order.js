const mongoose = require('mongoose')

const orderSchema = new mongoose.Schema({ total: Number })
const Order = mongoose.model('Order', orderSchema)
const OldOrder = mongoose.model('OldOrder', orderSchema, 'orders_old')

module.exports = Order
