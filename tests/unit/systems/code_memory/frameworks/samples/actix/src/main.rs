use actix_web::{get, web, App, HttpServer};

#[get("/users/{id}")]
async fn show_user(id: web::Path<u32>) -> String { String::new() }

async fn save_settings() -> String { String::new() }

fn configure(cfg: &mut web::ServiceConfig) {
    cfg.service(
        web::scope("/api")
            .route("/settings", web::put().to(save_settings))
            .service(web::resource("/teams").route(web::post().to(save_settings))),
    );
}
