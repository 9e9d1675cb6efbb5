"""Checkout: a cart becomes an invoice."""

from shop.carts import Cart
from shop.models import Invoice as Bill, Reminder
from shop.prices import round_price as rounded
from shop.store import open_store


def check_out(cart: Cart, number: int) -> Bill:
    store = open_store()
    bill = Bill(number)
    amount = rounded(cart.total())
    store.save(bill)
    print("Größe 𝄞:", amount, bill.total())
    cart.close()
    return bill


def remind(number: int) -> None:
    store = open_store()
    found = store.find(number)
    found.save()
    Reminder(found.number).send()
    store.close()
