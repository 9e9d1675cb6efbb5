package handlers

func ListOrders(c *gin.Context) {}
