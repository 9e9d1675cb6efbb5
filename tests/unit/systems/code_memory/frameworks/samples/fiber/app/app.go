package app

import (
	"github.com/gofiber/fiber/v2"

	"shop/grpc"
	"shop/rest"
)

func Run(server *Server) {
	rest.NewRouter(server.App)
	grpc.NewRouter(server.GRPC)
}
