<?php

namespace App\Observers;

use App\Models\Invoice;
use Illuminate\Support\Str;

class InvoiceObserver
{
    public function creating(Invoice $invoice): void
    {
        $invoice->public_id ??= (string) Str::uuid();
    }

    public function deleted(Invoice $invoice): void
    {
        $invoice->reminders()->delete();
    }
}
