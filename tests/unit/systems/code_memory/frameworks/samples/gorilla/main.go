package main

import "github.com/gorilla/mux"

func main() {
	r := mux.NewRouter()
	r.HandleFunc("/health", health)
	api := r.PathPrefix("/api/v1").Subrouter()
	api.HandleFunc("/orders/{id:[0-9]+}", show).Methods("GET", "HEAD").Name("order")
	api.HandleFunc("/orders", create).
		Methods(http.MethodPost)
}

func health(w http.ResponseWriter, r *http.Request) {}
func show(w http.ResponseWriter, r *http.Request)   {}
func create(w http.ResponseWriter, r *http.Request) {}
