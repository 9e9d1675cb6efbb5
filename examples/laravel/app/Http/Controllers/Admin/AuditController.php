<?php

namespace App\Http\Controllers\Admin;

use App\Http\Controllers\Controller;
use App\Models\AuditEntry;

class AuditController extends Controller
{
    public function index()
    {
        return view('admin.audit.index', ['entries' => AuditEntry::with('subject')->latest()->paginate(100)]);
    }

    public function show(AuditEntry $entry)
    {
        return view('admin.audit.show', compact('entry'));
    }
}
