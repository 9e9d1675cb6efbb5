<?php

namespace App\Http\Controllers\Partner;

use App\Http\Controllers\Controller;
use App\Jobs\ExportLedger;
use App\Models\Company;

class StatementController extends Controller
{
    public function show(string $month)
    {
        return view('partner.statement', compact('month'));
    }

    public function store()
    {
        Company::query()->each(fn (Company $company) => ExportLedger::dispatch($company, 'csv'));

        return back();
    }
}
