<?php

namespace App\Jobs;

use App\Contracts\ExchangeRates;
use App\Models\ExchangeRate;
use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Foundation\Bus\Dispatchable;

class RefreshExchangeRates implements ShouldQueue
{
    use Dispatchable, Queueable;

    public function handle(ExchangeRates $rates): void
    {
        ExchangeRate::upsert($rates->today(), ['currency_code', 'quoted_on'], ['rate']);
    }
}
