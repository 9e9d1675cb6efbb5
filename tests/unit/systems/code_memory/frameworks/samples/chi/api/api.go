package api

import (
	"github.com/go-chi/chi/v5"

	"shop/admin"
)

type API struct {
	Orders  *OrderResource
	Refunds *RefundResource
}

func (a *API) Router() *chi.Mux {
	r := chi.NewRouter()
	accounts := admin.NewAPI()
	r.Mount("/orders", a.Orders.router())
	r.Mount("/refunds", a.Refunds.router())
	r.Mount("/admin", accounts.Router())
	r.Mount("/carts", cartResource{}.Routes())
	return r
}

type OrderResource struct{}

func (rs *OrderResource) router() *chi.Mux {
	r := chi.NewRouter()
	r.Get("/", rs.list)
	return r
}

func (rs *OrderResource) list(w http.ResponseWriter, r *http.Request) {}

type RefundResource struct{}

func (rs *RefundResource) router() *chi.Mux {
	r := chi.NewRouter()
	r.Get("/", rs.list)
	return r
}

func (rs *RefundResource) list(w http.ResponseWriter, r *http.Request) {}

type cartResource struct{}

func (rs cartResource) Routes() chi.Router {
	r := chi.NewRouter()
	r.Get("/", rs.show)
	return r
}

func (rs cartResource) show(w http.ResponseWriter, r *http.Request) {}
