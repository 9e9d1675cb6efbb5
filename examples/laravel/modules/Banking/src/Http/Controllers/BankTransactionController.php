<?php

namespace Modules\Banking\Http\Controllers;

use App\Events\PaymentReceived;
use App\Http\Controllers\Controller;
use App\Models\Invoice;
use Illuminate\Http\Request;
use Illuminate\Support\Facades\DB;
use Modules\Banking\Models\BankAccount;
use Modules\Banking\Models\BankTransaction;

class BankTransactionController extends Controller
{
    public function index(BankAccount $account)
    {
        return view('banking::transactions.index', ['transactions' => $account->transactions()->paginate()]);
    }

    public function show(BankTransaction $transaction)
    {
        return view('banking::transactions.show', compact('transaction'));
    }

    public function update(Request $request, BankTransaction $transaction)
    {
        $transaction->update($request->only('note'));

        return back();
    }

    public function match(Request $request, BankTransaction $transaction)
    {
        $invoice = Invoice::findOrFail($request->integer('invoice_id'));
        DB::transaction(function () use ($transaction, $invoice) {
            $payment = $invoice->payments()->create(['amount' => $transaction->amount, 'method' => 'transfer']);
            $transaction->update(['payment_id' => $payment->id]);
            event(new PaymentReceived($payment));
        });

        return back();
    }
}
