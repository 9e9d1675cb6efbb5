<?php

namespace App\Models;

class Address extends Record
{
    protected $fillable = ['street', 'postcode', 'city', 'country_code'];

    public function addressable()
    {
        return $this->morphTo();
    }
}
