<?php

namespace App\Providers;

use App\Contracts\ExchangeRates;
use App\Contracts\InvoiceRenderer;
use App\Models\Customer;
use App\Models\Invoice;
use App\Models\Quote;
use App\Observers\InvoiceObserver;
use App\Observers\PaymentObserver;
use App\Models\Payment;
use App\Services\CentralBankRates;
use App\Services\InvoiceNumbering;
use App\Services\PdfInvoiceRenderer;
use Illuminate\Database\Eloquent\Relations\Relation;
use Illuminate\Support\ServiceProvider;

class AppServiceProvider extends ServiceProvider
{
    public array $singletons = [
        InvoiceNumbering::class => InvoiceNumbering::class,
    ];

    public function register(): void
    {
        $this->app->bind(InvoiceRenderer::class, PdfInvoiceRenderer::class);
        $this->app->singleton(ExchangeRates::class, fn ($app) => new CentralBankRates($app['config']['billing.rates_url']));
    }

    public function boot(): void
    {
        Invoice::observe(InvoiceObserver::class);
        Payment::observe([PaymentObserver::class]);
        Relation::morphMap([
            'invoice' => Invoice::class,
            'quote' => Quote::class,
            'customer' => Customer::class,
        ]);
    }
}
