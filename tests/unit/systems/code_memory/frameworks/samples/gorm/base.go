package models

type Base struct {
	ID uint `gorm:"primaryKey"`
}

type Parcel struct {
	Base
	Weight int
}

type ParcelResponse struct {
	Parcel
	Url string
}
