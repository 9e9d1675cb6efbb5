<?php

namespace App\Models;

class Payment extends Record
{
    protected $fillable = ['amount', 'method', 'received_on', 'provider_reference'];

    public function invoice()
    {
        return $this->belongsTo(Invoice::class);
    }

    public function customer()
    {
        return $this->hasOneThrough(Customer::class, Invoice::class, 'id', 'id', 'invoice_id', 'customer_id');
    }
}
