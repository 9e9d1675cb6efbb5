/** Amounts travel as strings with two decimals. */
export type Amount = string;

export function format(amount: Amount, currency: string, locale = "en"): string {
  return new Intl.NumberFormat(locale, { style: "currency", currency }).format(Number(amount));
}

export const sum = (amounts: Amount[]): Amount =>
  (amounts.reduce((cents, amount) => cents + Math.round(Number(amount) * 100), 0) / 100).toFixed(2);
