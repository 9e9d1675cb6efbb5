export interface Priced {
  total(): number;
}

export class Bill implements Priced {
  constructor(private readonly amount: number) {}

  total(): number {
    return this.amount;
  }
}

export default function format(amount: number): string {
  return `${amount} €`;
}

export const round = (amount: number): number => Math.round(amount);
