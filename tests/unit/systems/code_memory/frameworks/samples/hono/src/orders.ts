import { Hono } from 'hono'
import * as store from './store'

const orders = new Hono()

orders
  .get('/', async (c) => c.json(await store.listOrders()))
  .get('/:id{[0-9]+}', async (c) => {
    return c.json(await store.findOrder(c.req.param('id')))
  })

export default orders
