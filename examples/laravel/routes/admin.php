<?php

use App\Http\Controllers\Admin\AuditController;
use App\Http\Controllers\Admin\CompanyController;
use App\Http\Controllers\Admin\MaintenanceController;
use App\Http\Controllers\Admin\UserController;
use Illuminate\Support\Facades\Route;

Route::get('/', [CompanyController::class, 'overview'])->name('overview');
Route::resource('companies', CompanyController::class)->only(['index', 'show', 'update']);
Route::resource('users', UserController::class)->except(['create', 'store']);
Route::post('users/{user}/impersonate', [UserController::class, 'impersonate'])->name('users.impersonate');

Route::middleware('can:audit')->group(static function (): void {
    Route::get('audit', [AuditController::class, 'index'])->name('audit.index');
    Route::get('audit/{entry}', [AuditController::class, 'show'])->whereUuid('entry')->name('audit.show');
});

Route::prefix('maintenance')->group(function () {
    Route::name('maintenance.')->group(function () {
        Route::controller(MaintenanceController::class)->group(function () {
            Route::get('queue', 'queue')->name('queue');
            Route::post('queue/flush', 'flush')->name('queue.flush');
            Route::post('rates', 'refreshRates')->name('rates');
        });
    });
});
