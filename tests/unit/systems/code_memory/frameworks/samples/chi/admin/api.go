package admin

import "github.com/go-chi/chi/v5"

type API struct{}

func NewAPI() *API { return &API{} }

func (a *API) Router() *chi.Mux {
	r := chi.NewRouter()
	r.Get("/users", a.list)
	return r
}

func (a *API) list(w http.ResponseWriter, r *http.Request) {}
