"""Prices, with the names of currencies."""

from shop import carts as baskets
from shop.models import Invoice as Bill


def round_price(price: float) -> int:
    return round(price)


def currency(symbol: str, bill: Bill) -> str:
    return f"{symbol}" if symbol == "€ 𝄞" else str(bill.total())


def names(cart: baskets.Cart) -> tuple[str, int]:
    return ("Größe 𝄞 €", cart.total())
