package main

import (
	"net/http"

	"github.com/go-chi/chi/v5"
)

func routes() http.Handler {
	r := chi.NewRouter()
	r.Get("/", home)
	r.Route("/articles", func(r chi.Router) {
		r.With(paginate).Get("/", listArticles)
		r.Route("/{articleID:[0-9]+}", func(r chi.Router) {
			r.Put("/", updateArticle)
		})
	})
	r.Mount("/admin", adminRouter())
	return r
}

func adminRouter() chi.Router {
	r := chi.NewRouter()
	r.Get("/accounts", listAccounts)
	return r
}

func home(w http.ResponseWriter, r *http.Request)          {}
func listArticles(w http.ResponseWriter, r *http.Request)  {}
func updateArticle(w http.ResponseWriter, r *http.Request) {}
func listAccounts(w http.ResponseWriter, r *http.Request)  {}
