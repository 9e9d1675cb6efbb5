package shop

import io.micronaut.http.annotation.*

@Controller("/orders")
class OrderController {
    @Get("/{id}")
    fun show(id: Long): Order = Order(id)

    @Post
    fun create(@Body order: Order) = order
}
