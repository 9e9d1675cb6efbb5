<?php

namespace App\Http\Controllers;

use App\Jobs\ExportLedger;
use App\Models\Company;
use App\Models\TaxRate;
use Illuminate\Support\Facades\DB;
use Illuminate\Support\Facades\Gate;

class ReportController extends Controller
{
    public function revenue(Company $company, ?int $year = null)
    {
        $months = DB::select(
            'select substr(issued_on, 1, 7) as month, sum(total) as total from invoices
             where company_id = ? and voided_at is null group by 1 order by 1',
            [$company->id],
        );

        return view('reports.revenue', compact('months', 'year'));
    }

    public function tax(string $from, string $to)
    {
        $rates = TaxRate::query()
            ->withSum(['lines' => fn ($lines) => $lines->whereBetween('created_at', [$from, $to])], 'net')
            ->get();

        return view('reports.tax', compact('rates', 'from', 'to'));
    }

    public function aging(Company $company)
    {
        $rows = DB::table('invoices as i')
            ->leftJoin('payments as p', 'p.invoice_id', '=', 'i.id')
            ->selectRaw('i.customer_id, sum(i.total) - coalesce(sum(p.amount), 0) as open')
            ->where('i.company_id', $company->id)
            ->groupBy('i.customer_id')
            ->get();

        return view('reports.aging', ['rows' => $rows]);
    }

    public function exportLedger(Company $company)
    {
        Gate::authorize('export-ledger');
        ExportLedger::dispatch($company, config('billing.export.format'));

        return back();
    }
}
