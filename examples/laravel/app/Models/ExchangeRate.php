<?php

namespace App\Models;

class ExchangeRate extends Record
{
    public $timestamps = false;
}
