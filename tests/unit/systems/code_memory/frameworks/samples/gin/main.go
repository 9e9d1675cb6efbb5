package main

import (
	"example.com/shop/users"

	"github.com/gin-gonic/gin"
)

func main() {
	r := gin.Default()
	v1 := r.Group("/api")
	users.Register(v1.Group("/users"))
	v1.Use(users.Auth())
	v1.DELETE("/cache/:key", clear)
	r.GET("/ping", func(c *gin.Context) { c.JSON(200, "pong") })
}

func clear(c *gin.Context) {}
