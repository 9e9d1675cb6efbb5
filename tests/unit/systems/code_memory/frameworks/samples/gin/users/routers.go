package users

import "github.com/gin-gonic/gin"

func Register(router *gin.RouterGroup) {
	router.POST("/", Create)
	router.GET("/:id", Show)
}

func Create(c *gin.Context) {}
func Show(c *gin.Context)   {}
func Auth() gin.HandlerFunc { return nil }
