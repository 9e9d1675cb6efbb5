"""Where documents are kept."""

from shop.models import Document


class Store:
    def __init__(self) -> None:
        self.kept: list[Document] = []

    def save(self, document: Document) -> None:
        self.kept.append(document)

    def find(self, number: int) -> Document:
        return next(one for one in self.kept if one.number == number)

    def close(self) -> None:
        self.kept = []


def open_store() -> Store:
    return Store()
