<?php

namespace App\Http\Controllers\Api;

use App\Http\Controllers\Controller;
use App\Models\Reminder;
use Illuminate\Http\Request;

class MailHookController extends Controller
{
    public function handle(Request $request, string $provider)
    {
        Reminder::where('message_id', $request->input('message_id'))->update(['bounced_at' => now()]);

        return response()->noContent();
    }
}
