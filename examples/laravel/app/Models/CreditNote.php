<?php

namespace App\Models;

class CreditNote extends DocumentModel
{
    protected $fillable = ['company_id', 'customer_id', 'invoice_id', 'amount', 'reason'];

    public function invoice()
    {
        return $this->belongsTo(Invoice::class);
    }
}
