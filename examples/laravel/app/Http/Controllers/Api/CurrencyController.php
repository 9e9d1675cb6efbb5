<?php

namespace App\Http\Controllers\Api;

use App\Http\Controllers\Controller;
use App\Models\Currency;

class CurrencyController extends Controller
{
    public function index()
    {
        return Currency::orderBy('code')->get();
    }

    public function show(string $code)
    {
        return Currency::with('latestRate')->findOrFail($code);
    }
}
