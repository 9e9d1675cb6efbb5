"""Documents that are sent to customers."""


class Document:
    def __init__(self, number: int) -> None:
        self.number = number

    def total(self) -> int:
        return 0

    def save(self) -> None:
        print(self.total())


class Invoice(Document):
    def total(self) -> int:
        return self.number * 2


class Reminder(Document):
    def total(self) -> int:
        return super().total() + 5

    def send(self) -> None:
        self.save()
