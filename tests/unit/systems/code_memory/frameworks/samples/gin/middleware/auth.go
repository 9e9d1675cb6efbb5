package middleware

func RequireUser() gin.HandlerFunc { return nil }
