<?php

namespace App\Listeners;

use App\Events\InvoiceSent;
use App\Events\InvoiceVoided;
use App\Jobs\DeliverWebhook;
use App\Models\Webhook;

class DeliverWebhooks
{
    public function handle(InvoiceSent $event): void
    {
        $this->deliver($event->invoice->company_id, 'invoice.sent');
    }

    public function handleVoided(InvoiceVoided $event): void
    {
        $this->deliver($event->invoice->company_id, 'invoice.voided');
    }

    private function deliver(int $company, string $name): void
    {
        Webhook::where('company_id', $company)->whereJsonContains('events', $name)->each(
            fn (Webhook $webhook) => DeliverWebhook::dispatch($webhook->deliveries()->create(['payload' => [$name]])),
        );
    }
}
