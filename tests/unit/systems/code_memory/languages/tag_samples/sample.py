from shop.tax import Rates
import shop.store

MAX_LINES = 10


class InvoiceSerializer(BaseSerializer):
    serializer_class = LineSerializer

    def total(self, rates: Rates) -> int:
        return rates.load().sum(self.lines)


@audited
def create(lines):
    return shop.store.save(InvoiceSerializer(lines))
