import Vapor

func routes(_ app: Application) throws {
    app.get("hello", ":name") { req in "Hello" }
    try app.register(collection: TodoController())
}
