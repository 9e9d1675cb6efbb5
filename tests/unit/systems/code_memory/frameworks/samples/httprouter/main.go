package main

import "github.com/julienschmidt/httprouter"

func main() {
	router := httprouter.New()
	router.GET("/orders/:id", show)
	router.HandlerFunc(http.MethodPost, "/orders", create)
}

func show(w http.ResponseWriter, r *http.Request, _ httprouter.Params) {}
func create(w http.ResponseWriter, r *http.Request)                    {}
