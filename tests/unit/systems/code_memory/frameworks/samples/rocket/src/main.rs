use rocket::serde::json::Json;

mod users;

const ADMIN: &str = "/admin";

#[get("/orders/<id>?<full>", format = "json")]
fn show(id: u32, full: bool) -> String { String::new() }

#[post("/orders", data = "<order>")]
async fn create(order: Json<Order>) -> String { String::new() }

#[get("/files/<path..>")]
fn file(path: PathBuf) -> String { String::new() }

#[launch]
fn rocket() -> _ {
    rocket::build()
        .mount("/api", routes![show, create])
        .mount(ADMIN, users::routes())
        .mount("/public", routes![users::profile::show])
}
