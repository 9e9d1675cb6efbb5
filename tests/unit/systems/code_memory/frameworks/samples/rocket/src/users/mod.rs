pub mod profile;

use rocket::{routes, Route};

#[rocket::get("/users")]
fn list() -> String { String::new() }

#[rocket::delete("/users/<id>")]
fn remove(id: u32) -> String { String::new() }

pub fn routes() -> Vec<Route> {
    routes![list, remove]
}
