import Vapor

struct Cleanup: AsyncScheduledJob {
    func run(context: QueueContext) async throws {}
}

final class Order: Model {
    static let schema = "orders"
}

struct RequireUser: AsyncMiddleware {}

struct CreateOrders: AsyncMigration {}

struct RefundService {}

struct Price {}
