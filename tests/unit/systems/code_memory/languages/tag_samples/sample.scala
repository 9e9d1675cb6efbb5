package shop.orders

import shop.tax.Rates

trait Priced { def price: Int }

case class Order(id: Int) extends Base with Priced {
  val maxLines = 10
  def price: Int = rates.load(id).sum
  def total(rates: Rates): Int = summed(new Line(id))
}

object Orders {
  def empty: Order = Order(0)
}

type Lines = List[Int]
