class OrdersTest < ActionDispatch::IntegrationTest
  def test_update
    patch "/orders/#{order.id}"
  end
end
