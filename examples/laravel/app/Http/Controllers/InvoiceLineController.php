<?php

namespace App\Http\Controllers;

use App\Http\Requests\StoreInvoiceLineRequest;
use App\Models\Invoice;
use App\Models\InvoiceLine;

class InvoiceLineController extends Controller
{
    public function store(StoreInvoiceLineRequest $request, Invoice $invoice)
    {
        $line = $invoice->lines()->create($request->validated());

        return back();
    }

    public function update(StoreInvoiceLineRequest $request, Invoice $invoice, InvoiceLine $line)
    {
        $line->update($request->validated());

        return back();
    }

    public function destroy(Invoice $invoice, InvoiceLine $line)
    {
        $line->delete();

        return back();
    }
}
