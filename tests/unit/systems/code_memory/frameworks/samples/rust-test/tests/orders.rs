#[tokio::test]
async fn removes_an_order() {
    app().oneshot(Request::builder().uri("/orders/1").method("DELETE").body(empty())).await;
}

#[tokio::test]
async fn shows_an_order() {
    client.get(format!("{}/orders/1", base)).send().await;
    client.get("/orders/1").send().await;
}
