import { Hono } from 'hono'
import orders from './orders'

const app = new Hono().basePath('/api')

app.get('/health', (c) => c.text('up'))
app.route('/orders', orders)

export default app
