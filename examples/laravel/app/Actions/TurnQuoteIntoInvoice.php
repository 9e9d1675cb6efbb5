<?php

namespace App\Actions;

use App\Models\Invoice;
use App\Models\Quote;
use App\Services\InvoiceNumbering;

class TurnQuoteIntoInvoice
{
    public function __construct(private InvoiceNumbering $numbering)
    {
    }

    public function run(Quote $quote): Invoice
    {
        $invoice = Invoice::create([
            'company_id' => $quote->company_id,
            'customer_id' => $quote->customer_id,
            'number' => $this->numbering->next(),
            'issued_on' => now(),
        ]);
        $quote->invoice()->associate($invoice)->save();

        return $invoice;
    }
}
