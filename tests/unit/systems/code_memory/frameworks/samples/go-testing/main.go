package main

import "github.com/go-chi/chi/v5"

func routes() *chi.Mux {
	r := chi.NewRouter()
	r.Route("/orders", func(r chi.Router) {
		r.Get("/{id}", show)
		r.Post("/", create)
	})
	return r
}
