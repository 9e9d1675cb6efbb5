<?php

namespace App\Events;

use App\Models\Payment;
use Illuminate\Contracts\Broadcasting\ShouldBroadcast;
use Illuminate\Foundation\Events\Dispatchable;

class PaymentReceived implements ShouldBroadcast
{
    use Dispatchable;

    public function __construct(public Payment $payment)
    {
    }

    public function broadcastOn(): array
    {
        return ['companies.'.$this->payment->invoice->company_id];
    }
}
