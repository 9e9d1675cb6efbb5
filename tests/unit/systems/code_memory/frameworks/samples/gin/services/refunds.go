package services

type Refunds struct{}

func (r *Refunds) Create() {}
