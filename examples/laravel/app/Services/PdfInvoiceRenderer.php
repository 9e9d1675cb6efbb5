<?php

namespace App\Services;

use App\Contracts\InvoiceRenderer;
use App\Models\Invoice;

class PdfInvoiceRenderer implements InvoiceRenderer
{
    public function render(Invoice $invoice): string
    {
        return view('invoices.pdf', ['invoice' => $invoice, 'paper' => config('billing.pdf.paper')])->render();
    }
}
