<?php

namespace App\Jobs;

use App\Models\WebhookDelivery;
use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Foundation\Bus\Dispatchable;
use Illuminate\Support\Facades\Http;

class DeliverWebhook implements ShouldQueue
{
    use Dispatchable, Queueable;

    public function __construct(private WebhookDelivery $delivery)
    {
    }

    public function handle(): void
    {
        $answer = Http::timeout(config('services.webhooks.timeout'))
            ->post($this->delivery->webhook->url, $this->delivery->payload);
        $this->delivery->update(['last_status' => $answer->status(), 'attempts' => $this->delivery->attempts + 1]);
    }
}
