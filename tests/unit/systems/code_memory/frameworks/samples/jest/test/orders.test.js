const request = require('supertest')
const app = require('../src/app')

describe('orders', () => {
  it('shows one', async () => {
    await request(app).get('/orders/5').expect(200)
  })
  it('creates one', async () => {
    await fetch(`${base}/orders`, { method: 'POST' })
  })
})
