package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestShow(t *testing.T) {
	req := httptest.NewRequest(http.MethodGet, "/orders/1", nil)
	serve(req)
}

func TestCreate(t *testing.T) {
	http.Post(server.URL+"/orders", "application/json", nil)
}
