<?php

namespace App\Providers;

use App\Events\InvoiceSent;
use App\Events\InvoiceVoided;
use App\Events\PaymentReceived;
use App\Listeners\DeliverWebhooks;
use App\Listeners\MarkInvoicePaid;
use App\Listeners\RecordAuditEntry;
use App\Listeners\ScheduleReminders;
use App\Listeners\SendReceipt;
use Illuminate\Foundation\Support\Providers\EventServiceProvider as ServiceProvider;
use Illuminate\Support\Facades\Event;

class EventServiceProvider extends ServiceProvider
{
    protected $listen = [
        InvoiceSent::class => [
            ScheduleReminders::class,
            DeliverWebhooks::class,
        ],
        PaymentReceived::class => [
            MarkInvoicePaid::class,
            SendReceipt::class.'@handle',
        ],
    ];

    protected $subscribe = [
        RecordAuditEntry::class,
    ];

    public function boot(): void
    {
        Event::listen(InvoiceVoided::class, [DeliverWebhooks::class, 'handleVoided']);
    }
}
