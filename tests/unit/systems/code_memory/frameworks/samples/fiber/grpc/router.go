package grpc

func NewRouter(server *Server) {}
