<?php

namespace App\Listeners;

use App\Events\PaymentReceived;
use App\Notifications\ReceiptNotification;
use Illuminate\Support\Facades\Notification;

class SendReceipt
{
    public function handle(PaymentReceived $event): void
    {
        Notification::route('mail', $event->payment->customer->email)->notify(new ReceiptNotification($event->payment));
    }
}
