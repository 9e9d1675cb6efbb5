package main

import "net/http"

func main() {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /items/{id}", showItem)
	mux.Handle("/static/", http.FileServer(http.Dir("static")))
	http.HandleFunc("/healthz", healthz)
}

func showItem(w http.ResponseWriter, r *http.Request) {}
func healthz(w http.ResponseWriter, r *http.Request)  {}
