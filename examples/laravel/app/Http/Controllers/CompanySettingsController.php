<?php

namespace App\Http\Controllers;

use App\Http\Requests\UpdateCompanyRequest;
use App\Models\Company;
use App\Models\NumberSequence;
use Illuminate\Http\Request;
use Illuminate\Support\Facades\Storage;

class CompanySettingsController extends Controller
{
    public function edit(Company $company)
    {
        return view('settings.edit', compact('company'));
    }

    public function update(UpdateCompanyRequest $request, Company $company)
    {
        $company->update($request->validated());

        return back();
    }

    public function numbering(Company $company)
    {
        return view('settings.numbering', ['sequences' => NumberSequence::where('company_id', $company->id)->get()]);
    }

    public function updateNumbering(Request $request, Company $company)
    {
        NumberSequence::updateOrCreate(
            ['company_id' => $company->id, 'series' => $request->input('series')],
            $request->validate(['pattern' => 'required|string|max:40']),
        );

        return back();
    }

    public function removeLogo(Company $company)
    {
        Storage::delete($company->logo_path);
        $company->update(['logo_path' => null]);

        return back();
    }
}
