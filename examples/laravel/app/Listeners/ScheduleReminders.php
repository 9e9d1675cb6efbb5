<?php

namespace App\Listeners;

use App\Events\InvoiceSent;
use Illuminate\Contracts\Queue\ShouldQueue;

class ScheduleReminders implements ShouldQueue
{
    public function handle(InvoiceSent $event): void
    {
        foreach (config('billing.reminders.days') as $level => $days) {
            $event->invoice->reminders()->create([
                'level' => $level + 1,
                'due_on' => $event->invoice->due_on->addDays($days),
            ]);
        }
    }
}
