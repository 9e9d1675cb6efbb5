<?php

namespace App\Http\Controllers\Api;

use App\Http\Controllers\Controller;
use App\Models\Payment;
use Illuminate\Http\Request;

class StripeHookController extends Controller
{
    public function handle(Request $request)
    {
        Payment::where('provider_reference', $request->input('data.object.id'))->update(['settled_at' => now()]);

        return response()->noContent();
    }
}
