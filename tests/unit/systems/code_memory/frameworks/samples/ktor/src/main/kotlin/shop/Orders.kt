package shop

import io.ktor.server.routing.*

fun Route.orderRoutes(orderController: OrderController) {
    route("orders") {
        authenticate {
            post { orderController.create(call) }
        }
        get("{id}") { orderController.show(call) }
        delete("{id}") {
            val cache = client.get("/cache")
            removeOrder(call.parameters["id"])
        }
    }
}

fun removeOrder(id: String?) {}
