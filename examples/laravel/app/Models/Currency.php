<?php

namespace App\Models;

class Currency extends Record
{
    protected $primaryKey = 'code';

    protected $keyType = 'string';

    public $incrementing = false;

    public function rates()
    {
        return $this->hasMany(ExchangeRate::class, 'currency_code', 'code');
    }

    public function latestRate()
    {
        return $this->hasOne(ExchangeRate::class, 'currency_code')->latestOfMany('quoted_on');
    }
}
