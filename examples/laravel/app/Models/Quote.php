<?php

namespace App\Models;

class Quote extends DocumentModel
{
    protected $fillable = ['company_id', 'customer_id', 'number', 'valid_until', 'total'];

    public function lines()
    {
        return $this->hasMany(QuoteLine::class);
    }

    public function invoice()
    {
        return $this->belongsTo(Invoice::class);
    }

    public function isExpired(): bool
    {
        return $this->valid_until !== null && now()->gt($this->valid_until);
    }
}
