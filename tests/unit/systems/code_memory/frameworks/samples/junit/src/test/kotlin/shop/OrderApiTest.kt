package shop

class OrderApiTest {
    @Test
    fun `shows an order`() {
        mvc.get("/orders/${order.id}").andExpect { status { isOk() } }
    }
}
