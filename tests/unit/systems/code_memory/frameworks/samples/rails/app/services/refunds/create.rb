module Refunds
  class Create
    def call(order) = order.refund
  end
end
