use axum::{routing::get, Router};

pub fn router() -> Router {
    Router::new()
        .route("/", get(list).post(create))
        .route("/{id}", get(show).delete(remove))
}

async fn list() {}
async fn create() {}
async fn show() {}
async fn remove() {}
