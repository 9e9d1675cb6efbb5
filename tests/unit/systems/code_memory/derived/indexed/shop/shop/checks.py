"""Checks of the checkout."""

from shop.carts import Cart
from shop.checkout import check_out


def check_totals() -> None:
    cart = Cart()
    cart.add(3)
    bill = check_out(cart, 7)
    assert bill.total() == 14
