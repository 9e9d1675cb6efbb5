<?php

namespace App\Jobs;

use App\Contracts\InvoiceRenderer;
use App\Models\Invoice;
use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Foundation\Bus\Dispatchable;
use Illuminate\Queue\InteractsWithQueue;
use Illuminate\Support\Facades\Storage;

class RenderInvoicePdf implements ShouldQueue
{
    use Dispatchable, InteractsWithQueue, Queueable;

    public int $tries = 3;

    public function __construct(public Invoice $invoice)
    {
    }

    public function handle(InvoiceRenderer $renderer): void
    {
        Storage::put("invoices/{$this->invoice->public_id}.pdf", $renderer->render($this->invoice));
    }
}
