use axum::{routing::{get, post}, Router};

mod users;

fn app() -> Router {
    Router::new()
        .route("/", get(root))
        .nest("/users", users::router())
        .merge(health())
}

fn health() -> Router {
    Router::new().route("/health", get(|| async { "ok" }))
}

async fn root() -> &'static str { "welcome" }
