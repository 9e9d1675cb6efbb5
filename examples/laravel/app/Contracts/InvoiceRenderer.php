<?php

namespace App\Contracts;

use App\Models\Invoice;

interface InvoiceRenderer
{
    public function render(Invoice $invoice): string;
}
