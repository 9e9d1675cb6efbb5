<?php

namespace App\Http\Controllers;

use App\Events\PaymentReceived;
use App\Http\Requests\StorePaymentRequest;
use App\Models\Invoice;
use App\Models\Payment;
use Illuminate\Support\Facades\DB;

class PaymentController extends Controller
{
    public function index(Invoice $invoice)
    {
        return view('payments.index', ['payments' => $invoice->payments()->latest()->get()]);
    }

    public function create(Invoice $invoice)
    {
        return view('payments.create', compact('invoice'));
    }

    public function store(StorePaymentRequest $request, Invoice $invoice)
    {
        $payment = DB::transaction(function () use ($request, $invoice) {
            $payment = $invoice->payments()->create($request->validated());
            DB::table('payment_allocations')->insert([
                'payment_id' => $payment->id,
                'invoice_id' => $invoice->id,
                'amount' => $payment->amount,
            ]);

            return $payment;
        });
        PaymentReceived::dispatch($payment);

        return redirect()->route('payments.show', $payment);
    }

    public function show(Payment $payment)
    {
        return view('payments.show', compact('payment'));
    }

    public function destroy(Payment $payment)
    {
        $this->authorize('delete', $payment->invoice);
        $payment->delete();

        return back();
    }
}
