<?php

namespace App\Models;

class NumberSequence extends CompanyModel
{
    protected $fillable = ['company_id', 'series', 'pattern', 'next'];
}
