package shop

import io.ktor.server.application.Application
import io.ktor.server.routing.routing

fun Application.module() {
    val orders = OrderController()
    routing {
        get("/health") { call.respond("up") }
        route("/api/v1") {
            orderRoutes(orders)
        }
    }
}

class OrderController {
    suspend fun create(call: ApplicationCall) {}
    suspend fun show(call: ApplicationCall) {}
}
