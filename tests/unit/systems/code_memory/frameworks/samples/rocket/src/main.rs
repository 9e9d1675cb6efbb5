use rocket::serde::json::Json;

#[get("/orders/<id>?<full>", format = "json")]
fn show(id: u32, full: bool) -> String { String::new() }

#[post("/orders", data = "<order>")]
async fn create(order: Json<Order>) -> String { String::new() }

#[get("/files/<path..>")]
fn file(path: PathBuf) -> String { String::new() }
