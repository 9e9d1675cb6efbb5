const { Model, Sequelize } = require('sequelize')

class Order extends Model {}
Order.init({ total: Sequelize.INTEGER }, { sequelize, modelName: 'Order', tableName: 'shop_orders' })

const Cart = sequelize.define('cart', { title: { type: Sequelize.STRING } })
