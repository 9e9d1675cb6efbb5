<?php

namespace App\Http\Controllers;

use App\Http\Requests\StoreExpenseRequest;
use App\Models\Expense;
use Illuminate\Http\Request;

class ExpenseController extends Controller
{
    public function index()
    {
        return view('expenses.index', ['expenses' => Expense::query()->latest()->paginate()]);
    }

    public function create()
    {
        return view('expenses.create');
    }

    public function store(StoreExpenseRequest $request)
    {
        $expense = Expense::query()->create($request->validated());

        return redirect()->route('expenses.show', $expense);
    }

    public function show(Expense $expense)
    {
        return view('expenses.show', compact('expense'));
    }

    public function edit(Expense $expense)
    {
        return view('expenses.edit', compact('expense'));
    }

    public function update(StoreExpenseRequest $request, Expense $expense)
    {
        $expense->update($request->validated());

        return redirect()->route('expenses.show', $expense);
    }

    public function destroy(Expense $expense)
    {
        $expense->delete();

        return back();
    }

    /** Takes receipts from an uploaded file; a GET shows the form. */
    public function import(Request $request)
    {
        if ($request->isMethod('get')) {
            return view('expenses.import');
        }
        \App\Jobs\ImportExpenses::dispatch($request->file('receipts')->store('imports'));

        return redirect()->route('costs.index');
    }
}
