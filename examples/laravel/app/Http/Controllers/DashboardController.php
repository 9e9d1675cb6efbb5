<?php

namespace App\Http\Controllers;

use App\Models\Company;
use App\Models\Invoice;
use Illuminate\Support\Facades\DB;

/** Shows what a company is owed today. */
class DashboardController extends Controller
{
    public function __invoke(Company $company)
    {
        $owed = DB::table('invoices')
            ->join('customers', 'customers.id', '=', 'invoices.customer_id')
            ->where('invoices.company_id', $company->id)
            ->whereNull('invoices.paid_at')
            ->sum('invoices.total');
        $latest = Invoice::query()->latest()->limit(config('billing.dashboard.latest'))->get();

        return view('dashboard', compact('owed', 'latest'));
    }
}
