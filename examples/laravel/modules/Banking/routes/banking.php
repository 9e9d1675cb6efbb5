<?php

use Illuminate\Support\Facades\Route;
use Modules\Banking\Http\Controllers\BankAccountController;
use Modules\Banking\Http\Controllers\BankTransactionController;
use Modules\Banking\Http\Controllers\StatementImportController;

Route::middleware(['web', 'auth', 'company'])->prefix('banking')->name('banking.')->group(function () {
    Route::resource('accounts', BankAccountController::class);
    Route::resource('accounts.transactions', BankTransactionController::class)
        ->only(['index', 'show', 'update'])
        ->shallow();
    Route::post('accounts/{account}/statements', StatementImportController::class)->name('statements.import');
    Route::post('transactions/{transaction}/match', [BankTransactionController::class, 'match'])
        ->name('transactions.match');
});
