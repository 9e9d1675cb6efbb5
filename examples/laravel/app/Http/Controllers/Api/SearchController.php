<?php

namespace App\Http\Controllers\Api;

use App\Http\Controllers\Controller;
use App\Models\Customer;
use App\Models\Invoice;
use Illuminate\Http\Request;

class SearchController extends Controller
{
    public function __invoke(Request $request)
    {
        $term = $request->string('q');

        return [
            'invoices' => Invoice::where('number', 'like', $term.'%')->limit(10)->get(),
            'customers' => Customer::where('name', 'like', '%'.$term.'%')->limit(10)->get(),
        ];
    }

    public function preflight()
    {
        return response('', 204);
    }
}
