class Price
  def self.of(order) = order.total
end
