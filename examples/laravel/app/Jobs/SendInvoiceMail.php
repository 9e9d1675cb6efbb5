<?php

namespace App\Jobs;

use App\Models\Invoice;
use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Foundation\Bus\Dispatchable;
use Illuminate\Support\Facades\Mail;

class SendInvoiceMail implements ShouldQueue
{
    use Dispatchable, Queueable;

    public function __construct(public Invoice $invoice)
    {
    }

    public function handle(): void
    {
        Mail::send('mail.invoice', ['invoice' => $this->invoice], function ($message) {
            $message->to($this->invoice->customer->email)->subject(__('invoices.subject'));
        });
        $this->invoice->update(['sent_at' => now()]);
    }
}
