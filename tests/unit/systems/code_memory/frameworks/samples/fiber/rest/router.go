package rest

import "github.com/gofiber/fiber/v2"

func NewRouter(app *fiber.App) {
	NewRoutes(app.Group("/v1"))
}

func NewRoutes(group fiber.Router) {
	handler := &OrderHandler{}
	other := NewCartHandler()
	orders := group.Group("/orders")
	orders.Get("/:id", handler.show)
	orders.Get("/:id/cart", other.show)
}

type OrderHandler struct{}

func (h *OrderHandler) show(ctx *fiber.Ctx) error { return nil }
