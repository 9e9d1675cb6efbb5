<?php

namespace App\Models;

class Supplier extends CompanyModel
{
    protected $guarded = [];

    public function expenses()
    {
        return $this->hasMany(Expense::class);
    }

    public function address()
    {
        return $this->morphOne(Address::class, 'addressable');
    }
}
