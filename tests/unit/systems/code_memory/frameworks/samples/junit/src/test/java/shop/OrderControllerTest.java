package shop;

class OrderControllerTest {
    @Test
    void showsAnOrder() throws Exception {
        mvc.perform(get("/orders/{id}", 1)).andExpect(status().isOk());
    }

    @Test
    void changesAnOrder() {
        client.put().uri("/orders/3").bodyValue(order).exchange();
    }
}
