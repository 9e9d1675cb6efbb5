<?php

namespace App\Http\Controllers\Admin;

use App\Http\Controllers\Controller;
use App\Jobs\RefreshExchangeRates;
use Illuminate\Support\Facades\DB;

class MaintenanceController extends Controller
{
    public function queue()
    {
        return view('admin.queue', ['waiting' => DB::table('jobs')->count()]);
    }

    public function flush()
    {
        DB::table('failed_jobs')->delete();

        return back();
    }

    public function refreshRates()
    {
        RefreshExchangeRates::dispatch();

        return back();
    }
}
