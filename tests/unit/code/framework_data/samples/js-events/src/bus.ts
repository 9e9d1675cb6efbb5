bus.emit('order.paid')
