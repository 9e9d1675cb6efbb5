package main

import "github.com/labstack/echo/v4"

func main() {
	e := echo.New()
	g := e.Group("/admin", guard)
	g.GET("/reports/:id", showReport)
	e.POST("/login", login, limit)
}

func showReport(c echo.Context) error { return nil }
func login(c echo.Context) error      { return nil }
