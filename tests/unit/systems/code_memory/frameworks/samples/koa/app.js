const Koa = require('koa')
const Router = require('@koa/router')
const orders = require('./orders')

const app = new Koa()
const router = new Router({ prefix: '/orders' })
router.get('/', orders.list)
router.del('/:id', orders.remove)
app.use(router.routes())
