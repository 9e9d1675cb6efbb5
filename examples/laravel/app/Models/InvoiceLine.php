<?php

namespace App\Models;

class InvoiceLine extends Record
{
    protected $fillable = ['position', 'text', 'quantity', 'unit_price', 'tax_rate_id', 'product_id'];

    protected $touches = ['invoice'];

    public function invoice()
    {
        return $this->belongsTo(Invoice::class);
    }

    public function taxRate()
    {
        return $this->belongsTo(TaxRate::class);
    }

    public function product()
    {
        return $this->belongsTo(Product::class)->withoutGlobalScopes();
    }

    public function timeEntries()
    {
        return $this->hasMany(TimeEntry::class, 'billed_line_id');
    }
}
