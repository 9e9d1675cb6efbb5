<?php

namespace App\Listeners;

use App\Events\PaymentReceived;

class MarkInvoicePaid
{
    public function handle(PaymentReceived $event): void
    {
        $invoice = $event->payment->invoice;
        if (bccomp($invoice->open_amount, '0', 2) <= 0) {
            $invoice->update(['paid_at' => now()]);
        }
    }
}
