<?php

namespace Modules\Banking\Http\Controllers;

use App\Http\Controllers\Controller;
use Illuminate\Http\Request;
use Modules\Banking\Models\BankAccount;

class BankAccountController extends Controller
{
    public function index()
    {
        return view('banking::accounts.index', ['accounts' => BankAccount::withCount('transactions')->get()]);
    }

    public function create()
    {
        return view('banking::accounts.create');
    }

    public function store(Request $request)
    {
        $account = BankAccount::create($request->validate(['iban' => 'required|string|max:34', 'label' => 'required']));

        return redirect()->route('banking.accounts.show', $account);
    }

    public function show(BankAccount $account)
    {
        return view('banking::accounts.show', compact('account'));
    }

    public function edit(BankAccount $account)
    {
        return view('banking::accounts.edit', compact('account'));
    }

    public function update(Request $request, BankAccount $account)
    {
        $account->update($request->validate(['label' => 'required|string']));

        return back();
    }

    public function destroy(BankAccount $account)
    {
        $account->delete();

        return redirect()->route('banking.accounts.index');
    }
}
