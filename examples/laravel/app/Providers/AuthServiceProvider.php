<?php

namespace App\Providers;

use App\Models\Customer;
use App\Models\Expense;
use App\Models\Invoice;
use App\Models\User;
use App\Policies\CustomerPolicy;
use App\Policies\ExpensePolicy;
use App\Policies\InvoicePolicy;
use Illuminate\Foundation\Support\Providers\AuthServiceProvider as ServiceProvider;
use Illuminate\Support\Facades\Gate;

class AuthServiceProvider extends ServiceProvider
{
    protected $policies = [
        Invoice::class => InvoicePolicy::class,
        Customer::class => CustomerPolicy::class,
        'App\Models\Expense' => 'App\Policies\ExpensePolicy',
    ];

    public function boot(): void
    {
        $this->registerPolicies();
        Gate::define('audit', fn (User $user) => $user->is_operator);
        Gate::define('export-ledger', [ExpensePolicy::class, 'export']);
    }
}
