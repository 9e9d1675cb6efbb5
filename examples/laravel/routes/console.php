<?php

use App\Jobs\RefreshExchangeRates;
use Illuminate\Support\Facades\Artisan;

Artisan::command('rates:refresh', function () {
    RefreshExchangeRates::dispatch();
    $this->info('Exchange rates are being refreshed.');
})->purpose('Fetch the rates of the day');
