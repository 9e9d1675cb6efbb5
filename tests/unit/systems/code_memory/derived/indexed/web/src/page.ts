import print, { Bill, round as rounded } from "./lib/money";
import * as carts from "./lib/cart";

export function page(amount: number): string {
  const cart = new carts.Cart();
  const bill = new Bill(rounded(amount));
  cart.add(bill);
  return "Größe 𝄞: " + print(cart.total()) + print(bill.total());
}
