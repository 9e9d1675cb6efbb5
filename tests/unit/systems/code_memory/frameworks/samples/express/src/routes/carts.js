const express = require('express')
const cartService = require('../services/cartService')
const { findCart } = require('../services/carts')

const router = express.Router()

router.get('/:id', async (req, res) => {
  res.json(await findCart(req.params.id))
})
router.post('/', wrap(async (req, res) => {
  const cart = await cartService.create(req.body)
  res.status(201).json(cart)
}))

module.exports = router
