package orders

import (
	"fmt"

	"github.com/acme/shop/internal/tax"
)

const MaxLines = 10

type Repo interface {
	Find(id int) *Order
}

type Order struct {
	ID    int
	Rates tax.Table
}

func (o *Order) Total(ctx context.Context) int {
	store.AccessTokens().Create(ctx)
	return tax.Rate(o.ID) + sum(o)
}

func sum(o *Order) int {
	fmt.Println(o)
	return len(o.Rates)
}
