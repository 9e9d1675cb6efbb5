import Vapor

let maxLines = 10

protocol Priced { func price() -> Int }

class Order: Model, Priced {
    let rates: Rates
    init(rates: Rates) { self.rates = rates }
    func price() -> Int {
        return rates.load(for: self).sum()
    }
}

struct Line { var amount: Int }

enum State { case open }

extension Order {
    func describe() -> String { format(Line(amount: 1)) }
}
