<?php

namespace App\Http\Middleware;

use Illuminate\Foundation\Http\Middleware\TrimStrings;

class TrimInput extends TrimStrings
{
    protected $except = ['password', 'password_confirmation'];
}
