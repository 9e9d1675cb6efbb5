<?php

return [
    'name' => env('APP_NAME', 'Quittance'),
    'debug' => (bool) env('APP_DEBUG', false),
    'locale' => 'en',
    'providers' => [
        App\Providers\AppServiceProvider::class,
        App\Providers\AuthServiceProvider::class,
        App\Providers\EventServiceProvider::class,
        App\Providers\RouteServiceProvider::class,
        Modules\Banking\BankingServiceProvider::class,
    ],
];
