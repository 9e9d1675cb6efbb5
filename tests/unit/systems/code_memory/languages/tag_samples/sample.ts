import { Rates } from "./tax";

export const MAX_LINES = 10;

export interface Priced { price(): number }

export type Lines = Line[];

export enum State { Open }

@Injectable()
export class OrderService extends Base implements Priced {
  constructor(private readonly orders: OrderRepository) { super(); }

  async price(): Promise<number> {
    return this.orders.load(new Line()).sum();
  }
}

export function create(rates: Rates): Lines {
  return summed(rates);
}

abstract class Shape { abstract area(): number }

namespace Store { export function open() {} }
