<?php

namespace App\Services;

use App\Contracts\ExchangeRates;
use Illuminate\Support\Facades\Http;

class CentralBankRates implements ExchangeRates
{
    public function __construct(private string $url)
    {
    }

    public function today(): array
    {
        return collect(Http::get($this->url)->json('rates'))
            ->map(fn ($rate, $code) => ['currency_code' => $code, 'quoted_on' => date('Y-m-d'), 'rate' => $rate])
            ->values()
            ->all();
    }
}
