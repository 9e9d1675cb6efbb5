<?php

use App\Http\Controllers\Api;
use App\Http\Controllers\Api\PaymentController;
use App\Http\Controllers\Api\WebhookController;
use Illuminate\Http\Request;
use Illuminate\Support\Facades\Route;

Route::get('ping', fn () => ['time' => now()->toIso8601String()])->name('api.ping');
Route::options('{any}', [Api\SearchController::class, 'preflight'])->where('any', '.*');

Route::prefix('v1')->name('api.')->middleware(['auth:api', 'api.version:1'])->group(function () {
    Route::apiResource('invoices', Api\InvoiceController::class);
    Route::apiResources([
        'customers' => Api\CustomerController::class,
        'products' => Api\ProductController::class,
    ], ['except' => ['destroy']]);
    Route::apiResource('invoices.payments', PaymentController::class)->only(['index', 'store']);
    Route::apiResource('currencies', Api\CurrencyController::class)
        ->only(['index', 'show'])
        ->parameters(['currencies' => 'code'])
        ->withoutMiddleware('auth:api');

    Route::get('search', Api\SearchController::class)->name('search');
    Route::get('me', function (Request $request) {
        return $request->user()->load('memberships.company');
    })->name('me');

    Route::controller(WebhookController::class)->prefix('webhooks')->as('webhooks.')->group(function () {
        Route::get('/', 'index')->name('index');
        Route::post('/', 'store')->name('store');
        Route::delete('{webhook}', 'destroy')->name('destroy');
        Route::post('{webhook}/deliveries/{delivery}/retry', 'retry')->name('retry');
    });
});

Route::namespace('App\Http\Controllers\Api')->prefix('hooks')->group(function () {
    Route::post('stripe', 'StripeHookController@handle')->name('hooks.stripe');
    Route::post('mail/{provider}', ['uses' => 'MailHookController@handle', 'as' => 'hooks.mail']);
});
