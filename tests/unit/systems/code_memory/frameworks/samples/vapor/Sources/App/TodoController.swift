import Vapor

struct TodoController: RouteCollection {
    func boot(routes: RoutesBuilder) throws {
        let todos = routes.grouped("todos")
        todos.get(use: index)
        todos.post("import", use: self.create)
        todos.group(":todoID") { todo in
            todo.delete(use: delete)
        }
    }

    func index(req: Request) async throws -> [Todo] { [] }
    func create(req: Request) async throws -> Todo { Todo() }
    func delete(req: Request) async throws -> HTTPStatus { .ok }
}
