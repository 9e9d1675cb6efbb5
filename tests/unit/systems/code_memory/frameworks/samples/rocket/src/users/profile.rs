use rocket::get;

#[get("/profiles/<name>")]
pub fn show(name: &str) -> String { String::new() }
