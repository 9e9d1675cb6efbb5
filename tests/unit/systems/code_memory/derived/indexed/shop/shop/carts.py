"""Carts of customers."""


class Cart:
    def __init__(self) -> None:
        self.prices: list[int] = []

    def total(self) -> int:
        return sum(self.prices)

    def add(self, price: int) -> None:
        self.prices.append(price)

    def close(self) -> None:
        self.prices.clear()
