package rest

type CartHandler struct{}

func NewCartHandler() *CartHandler { return &CartHandler{} }

func (h *CartHandler) show(ctx *fiber.Ctx) error { return nil }
