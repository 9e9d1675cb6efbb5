use axum::{routing::get, Router};

fn app() -> Router {
    Router::new().route("/orders/{id}", get(show).delete(remove))
}

async fn show() {}
async fn remove() {}
