<?php

namespace App\Http\Controllers;

use App\Models\TimeEntry;
use Illuminate\Http\Request;

class TimeEntryController extends Controller
{
    public function index()
    {
        return view('time_entries.index', ['time_entries' => TimeEntry::query()->latest()->paginate()]);
    }

    public function store(Request $request)
    {
        $time_entry = TimeEntry::query()->create($request->all());

        return back();
    }

    public function destroy(TimeEntry $time_entry)
    {
        $time_entry->delete();

        return back();
    }
}
