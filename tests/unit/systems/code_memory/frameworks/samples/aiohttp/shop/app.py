from aiohttp import web

routes = web.RouteTableDef()


@routes.get("/orders/{id}", name="order")
async def show(request): ...


async def create(request): ...


app = web.Application()
app.add_routes(routes)
app.router.add_post("/orders", create)
app.router.add_route("PUT", "/orders/{id}", handler=create)
