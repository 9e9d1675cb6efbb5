const router = require('express').Router()
const controller = require('../controllers/orders')
const { requireUser } = require('../auth')

router.route('/orders')
  .get(controller.list)
  .post(requireUser, controller.create)
router.get('/orders/:id', controller.show)
router.delete('/orders/:id', requireUser, controller.remove)
router.post(`/orders/${kind}`, controller.create)

module.exports = router
