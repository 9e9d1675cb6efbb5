<?php

namespace App\Listeners;

use App\Events\InvoiceVoided;
use App\Models\AuditEntry;
use Illuminate\Events\Dispatcher;
use Illuminate\Support\Str;

class RecordAuditEntry
{
    public function onVoided(InvoiceVoided $event): void
    {
        AuditEntry::create(['uuid' => Str::uuid(), 'action' => 'voided', 'subject_id' => $event->invoice->public_id]);
    }

    public function subscribe(Dispatcher $events): void
    {
        $events->listen(InvoiceVoided::class, [self::class, 'onVoided']);
    }
}
