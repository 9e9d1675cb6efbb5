export default async function users(fastify, options) {
  fastify.get('/:id', { schema: {} }, getUser)
  fastify.post('/', createUser)
}
async function getUser(request) { return { id: request.params.id } }
async function createUser(request) { return {} }
