<?php

namespace App\Observers;

use App\Models\Payment;

class PaymentObserver
{
    public function deleted(Payment $payment): void
    {
        $payment->invoice->update(['paid_at' => null]);
    }
}
