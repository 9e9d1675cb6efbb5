import Vapor

func routes(_ app: Application) throws {
    app.get("orders", ":id", use: show)
}

func show(req: Request) async throws -> String { "" }
