import type { Amount } from "./money";

export interface Invoice {
  id: string;
  number: string | null;
  total: Amount;
}

export async function listInvoices(page = 1): Promise<Invoice[]> {
  const answer = await fetch(`/api/v1/invoices?page=${page}`);
  return (await answer.json()).data;
}
