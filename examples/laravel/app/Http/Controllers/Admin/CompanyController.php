<?php

namespace App\Http\Controllers\Admin;

use App\Http\Controllers\Controller;
use App\Models\Company;
use Illuminate\Http\Request;

class CompanyController extends Controller
{
    public function overview()
    {
        return view('admin.overview', ['companies' => Company::count()]);
    }

    public function index()
    {
        return view('admin.companies.index', ['companies' => Company::withTrashed()->paginate()]);
    }

    public function show(Company $company)
    {
        return view('admin.companies.show', compact('company'));
    }

    public function update(Request $request, Company $company)
    {
        $company->forceFill(['suspended_at' => $request->boolean('suspended') ? now() : null])->save();

        return back();
    }
}
