<?php

namespace App\Models;

class TaxRate extends CompanyModel
{
    protected $fillable = ['company_id', 'name', 'percent', 'valid_from'];

    public function lines()
    {
        return $this->hasMany(InvoiceLine::class);
    }
}
