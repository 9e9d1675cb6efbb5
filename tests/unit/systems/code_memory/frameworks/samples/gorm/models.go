package models

import "gorm.io/gorm"

type UserAccount struct {
	gorm.Model
	Email string
}
