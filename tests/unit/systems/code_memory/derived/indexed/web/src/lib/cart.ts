import type { Priced } from "./money";

export class Cart {
  private readonly priced: Priced[] = [];

  add(one: Priced): void {
    this.priced.push(one);
  }

  total(): number {
    return this.priced.reduce((sum, one) => sum + one.total(), 0);
  }
}
