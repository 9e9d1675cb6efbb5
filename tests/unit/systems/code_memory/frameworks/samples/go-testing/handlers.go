package main

import "net/http"

func show(w http.ResponseWriter, r *http.Request)   {}
func create(w http.ResponseWriter, r *http.Request) {}
