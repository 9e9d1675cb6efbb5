<?php

namespace App\Models;

class Contact extends Record
{
    protected $fillable = ['name', 'email', 'phone', 'is_primary'];

    protected $touches = ['customer'];

    public function customer()
    {
        return $this->belongsTo(Customer::class)->withTrashed();
    }

    public function company()
    {
        return $this->hasOneThrough(Company::class, Customer::class, 'id', 'id', 'customer_id', 'company_id');
    }
}
