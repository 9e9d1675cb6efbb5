<?php

namespace App\Http\Controllers;

use App\Models\CreditNote;
use Illuminate\Http\Request;

class CreditNoteController extends Controller
{
    public function index()
    {
        return view('credit_notes.index', ['credit_notes' => CreditNote::query()->latest()->paginate()]);
    }

    public function create()
    {
        return view('credit_notes.create');
    }

    public function store(Request $request)
    {
        $credit_note = CreditNote::query()->create($request->all());

        return redirect()->route('credit-notes.show', $credit_note);
    }

    public function show(CreditNote $credit_note)
    {
        return view('credit_notes.show', compact('credit_note'));
    }

    public function edit(CreditNote $credit_note)
    {
        return view('credit_notes.edit', compact('credit_note'));
    }

    public function update(Request $request, CreditNote $credit_note)
    {
        $credit_note->update($request->all());

        return redirect()->route('credit-notes.show', $credit_note);
    }

    public function destroy(CreditNote $credit_note)
    {
        $credit_note->delete();

        return back();
    }
}
