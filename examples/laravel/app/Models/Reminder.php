<?php

namespace App\Models;

class Reminder extends Record
{
    public const TABLE = 'dunning_reminders';

    protected $table = self::TABLE;

    public function invoice()
    {
        return $this->belongsTo(Invoice::class);
    }
}
