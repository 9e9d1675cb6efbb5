<?php

namespace App\Http\Controllers\Partner;

use App\Http\Controllers\Controller;
use App\Models\Company;
use Illuminate\Http\Request;

class ClientController extends Controller
{
    public function index()
    {
        return Company::where('partner_id', auth('partner')->id())->get();
    }

    public function update(Request $request, int $client)
    {
        Company::findOrFail($client)->update($request->validate(['note' => 'string']));

        return back();
    }
}
