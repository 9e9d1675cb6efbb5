<?php

namespace Modules\Banking;

use Illuminate\Support\ServiceProvider;
use Modules\Banking\Contracts\StatementReader;
use Modules\Banking\Services\CamtReader;

/** Connects bank accounts: routes, migrations and the reader of statements come with the module. */
class BankingServiceProvider extends ServiceProvider
{
    public function register(): void
    {
        $this->mergeConfigFrom(__DIR__.'/../config/banking.php', 'banking');
        $this->app->bind(StatementReader::class, CamtReader::class);
    }

    public function boot(): void
    {
        $this->loadRoutesFrom(__DIR__.'/../routes/banking.php');
        $this->loadMigrationsFrom(__DIR__.'/../database/migrations');
        $this->loadViewsFrom(__DIR__.'/../resources/views', 'banking');
    }
}
