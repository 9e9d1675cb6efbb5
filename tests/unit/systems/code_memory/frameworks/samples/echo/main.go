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

func addWrapped(e *echo.Echo, a *App, db Database) {
	e.GET("/lists/:id", withID(a.GetList))
	e.PUT("/lists/:id", allow(withID(a.UpdateList), "lists:manage"))
	e.POST("/imports", makeImport(db))
	e.POST("/hooks", allow(func(c echo.Context) error { return nil }, "hooks"))
	e.DELETE("/lists/:id", either(a.GetList, a.UpdateList))
}

func withID(next echo.HandlerFunc) echo.HandlerFunc             { return next }
func allow(next echo.HandlerFunc, p ...string) echo.HandlerFunc { return next }
func either(one, two echo.HandlerFunc) echo.HandlerFunc         { return one }
func makeImport(db Database) echo.HandlerFunc                   { return nil }
func (a *App) GetList(c echo.Context) error                     { return nil }
func (a *App) UpdateList(c echo.Context) error                  { return nil }
