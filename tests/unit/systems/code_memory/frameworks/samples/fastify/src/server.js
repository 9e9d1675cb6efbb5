import Fastify from 'fastify'
import users from './users.js'

const fastify = Fastify({ logger: true })
fastify.register(users, { prefix: '/users' })
fastify.get('/ping', async () => 'pong')
fastify.route({ method: ['PUT', 'PATCH'], url: '/settings/:key', handler: saveSetting })

async function saveSetting(request) { return request.body }
