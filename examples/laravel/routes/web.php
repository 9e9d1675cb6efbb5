<?php

use App\Http\Controllers\AttachmentController;
use App\Http\Controllers\CommentController;
use App\Http\Controllers\CompanySettingsController;
use App\Http\Controllers\CreditNoteController;
use App\Http\Controllers\CustomerContactController;
use App\Http\Controllers\CustomerController;
use App\Http\Controllers\DashboardController;
use App\Http\Controllers\ExpenseController;
use App\Http\Controllers\InvoiceController;
use App\Http\Controllers\InvoiceLineController;
use App\Http\Controllers\PaymentController;
use App\Http\Controllers\ProductController;
use App\Http\Controllers\ProfileController;
use App\Http\Controllers\QuoteController;
use App\Http\Controllers\ReportController;
use App\Http\Controllers\SupplierController;
use App\Http\Controllers\TagController;
use App\Http\Controllers\TimeEntryController;
use App\Models\Invoice;
use Illuminate\Support\Facades\Route;

Route::view('/', 'welcome')->name('home');
Route::view('/pricing', 'pages.pricing', ['plans' => ['solo', 'team', 'office']])->name('pricing');
Route::redirect('/start', '/register');
Route::permanentRedirect('/bills', '/invoices');

// Customers open an invoice by a signed link; they have no account.
Route::get('/i/{invoice:public_id}', [InvoiceController::class, 'publicView'])
    ->middleware('signed')
    ->name('invoices.public');

require __DIR__.'/auth.php';

Route::middleware(['auth', 'company'])->group(function () {
    Route::get('/dashboard', DashboardController::class)->name('dashboard');

    Route::resource('invoices', InvoiceController::class);
    Route::prefix('invoices/{invoice}')->name('invoices.')->group(function () {
        Route::post('send', [InvoiceController::class, 'send'])
            ->middleware(['can:send,invoice', 'throttle:20,1'])
            ->name('send');
        Route::get('pdf', [InvoiceController::class, 'pdf'])->name('pdf');
        Route::post('duplicate', [InvoiceController::class, 'duplicate'])->name('duplicate');
        Route::patch('void', [InvoiceController::class, 'void'])->can('void', 'invoice')->name('void');
    });
    Route::resource('invoices.lines', InvoiceLineController::class)
        ->only(['store', 'update', 'destroy'])
        ->scoped(['line' => 'position']);
    Route::resource('invoices.payments', PaymentController::class)->except(['edit', 'update'])->shallow();

    Route::resources([
        'quotes' => QuoteController::class,
        'credit-notes' => CreditNoteController::class,
    ]);
    Route::put('quotes/{quote}/accept', [QuoteController::class, 'accept'])->name('quotes.accept');

    Route::resource('customers', CustomerController::class)->names([
        'index' => 'customers.list',
        'create' => 'customers.new',
    ]);
    Route::resource('customers.contacts', CustomerContactController::class)->shallow()->except('show');

    Route::resource('products', ProductController::class)->parameters(['products' => 'article']);
    Route::resource('suppliers', SupplierController::class, ['except' => ['show'], 'as' => 'purchasing']);
    Route::resource('expenses', ExpenseController::class)->names('costs')->middleware('can:viewAny,App\Models\Expense');
    Route::match(['get', 'post'], 'expenses/import', [ExpenseController::class, 'import'])->name('expenses.import');
    Route::resource('time-entries', TimeEntryController::class)
        ->only('index', 'store', 'destroy')
        ->missing(fn () => redirect()->route('dashboard'));

    Route::singleton('profile', ProfileController::class);

    Route::controller(CompanySettingsController::class)
        ->prefix('settings')
        ->name('settings.')
        ->middleware('role:owner')
        ->group(function () {
            Route::get('/', 'edit')->name('edit');
            Route::put('/', 'update')->name('update');
            Route::get('numbering', 'numbering')->name('numbering');
            Route::put('numbering', 'updateNumbering')->name('numbering.update');
            Route::delete('logo', 'removeLogo')->name('logo.destroy');
        });

    Route::group(['prefix' => 'reports', 'as' => 'reports.', 'middleware' => ['role:owner,accountant']], function () {
        Route::get('revenue/{year?}', [ReportController::class, 'revenue'])
            ->whereNumber('year')
            ->name('revenue');
        Route::get('tax/{from}/{to}', [ReportController::class, 'tax'])
            ->where(['from' => '\d{4}-\d{2}-\d{2}', 'to' => '\d{4}-\d{2}-\d{2}'])
            ->name('tax');
        Route::get('aging', 'App\Http\Controllers\ReportController@aging')->name('aging');
        Route::group(['prefix' => 'export'], function () {
            Route::post('ledger', [ReportController::class, 'exportLedger'])->name('export.ledger');
        });
    });

    Route::any('attachments/{path}', [AttachmentController::class, 'serve'])
        ->where('path', '.*')
        ->name('attachments.serve');
    Route::post('{commentable}/{id}/comments', [CommentController::class, 'store'])
        ->whereIn('commentable', ['invoices', 'quotes', 'customers'])
        ->name('comments.store');
    Route::delete('comments/{comment}', [CommentController::class, 'destroy'])->name('comments.destroy');

    Route::get('tags', [TagController::class, 'index'])->name('tags.index');
    Route::post('tags/{tag:slug}/merge', [TagController::class, 'merge'])->name('tags.merge');

    Route::get('/overdue', function () {
        return view('invoices.overdue', ['invoices' => Invoice::overdue()->with('customer')->get()]);
    })->name('invoices.overdue');
});

Route::fallback(fn () => response()->view('errors.404', [], 404));
