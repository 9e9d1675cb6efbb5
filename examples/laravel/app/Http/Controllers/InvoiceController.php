<?php

namespace App\Http\Controllers;

use App\Contracts\InvoiceRenderer;
use App\Events\InvoiceSent;
use App\Events\InvoiceVoided;
use App\Http\Requests\StoreInvoiceRequest;
use App\Http\Requests\UpdateInvoiceRequest;
use App\Jobs\RenderInvoicePdf;
use App\Jobs\SendInvoiceMail;
use App\Models\Customer;
use App\Models\Invoice;
use App\Services\InvoiceNumbering;
use Illuminate\Support\Facades\Bus;
use Illuminate\Support\Facades\Gate;

/**
 * Invoices of the selected company: from draft to void.
 */
class InvoiceController extends Controller
{
    public function __construct(private InvoiceNumbering $numbering)
    {
        $this->authorizeResource(Invoice::class, 'invoice');
    }

    public function index()
    {
        return view('invoices.index', ['invoices' => Invoice::with('customer')->latest('issued_on')->paginate(50)]);
    }

    public function create()
    {
        return view('invoices.create', ['customers' => Customer::orderBy('name')->get()]);
    }

    /** Drafts an invoice and gives it the next number of its series. */
    public function store(StoreInvoiceRequest $request)
    {
        $invoice = Invoice::create($request->validated() + ['number' => $this->numbering->next()]);
        RenderInvoicePdf::dispatch($invoice)->onQueue('documents');

        return redirect()->route('invoices.show', $invoice);
    }

    public function show(Invoice $invoice)
    {
        return view('invoices.show', ['invoice' => $invoice->load('lines.taxRate', 'payments')]);
    }

    public function edit(Invoice $invoice)
    {
        return view('invoices.edit', compact('invoice'));
    }

    public function update(UpdateInvoiceRequest $request, Invoice $invoice)
    {
        $invoice->update($request->validated());
        dispatch(new RenderInvoicePdf($invoice));

        return redirect()->route('invoices.show', $invoice);
    }

    public function destroy(Invoice $invoice)
    {
        $invoice->delete();

        return redirect()->route('invoices.index');
    }

    public function send(Invoice $invoice)
    {
        Bus::chain([new RenderInvoicePdf($invoice), new SendInvoiceMail($invoice)])->dispatch();
        event(new InvoiceSent($invoice));

        return back()->with('status', __('invoices.sent'));
    }

    public function pdf(Invoice $invoice, InvoiceRenderer $renderer)
    {
        return response($renderer->render($invoice), 200, ['Content-Type' => 'application/pdf']);
    }

    public function duplicate(Invoice $invoice)
    {
        Gate::authorize('create', Invoice::class);
        $copy = $invoice->replicate(['number', 'paid_at']);
        $copy->save();

        return redirect()->route('invoices.edit', $copy);
    }

    public function void(Invoice $invoice)
    {
        $invoice->update(['voided_at' => now()]);
        InvoiceVoided::dispatch($invoice);

        return redirect()->route('invoices.show', $invoice);
    }

    public function publicView(Invoice $invoice)
    {
        return view('invoices.public', ['invoice' => $invoice]);
    }
}
