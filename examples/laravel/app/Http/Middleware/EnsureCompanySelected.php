<?php

namespace App\Http\Middleware;

use App\Models\Company;
use Closure;
use Illuminate\Http\Request;

/** Sends a user who has not chosen a company to the choice. */
class EnsureCompanySelected
{
    public function handle(Request $request, Closure $next)
    {
        $company = Company::find($request->session()->get('company_id'));
        if ($company === null) {
            return redirect()->route('companies.choose');
        }
        app()->instance(Company::class, $company);

        return $next($request);
    }
}
