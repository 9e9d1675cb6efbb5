local store = require("shop.store")

local Cart = {}

function Cart.new(items)
  return setmetatable({ items = items }, Cart)
end

function Cart:total()
  return store.sum(self.items)
end

local function helper(cart)
  return cart:total()
end

Cart.clear = function(self)
  helper(self)
end
