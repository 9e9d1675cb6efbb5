<?php

namespace App\Http\Controllers;

use App\Actions\TurnQuoteIntoInvoice;
use App\Http\Requests\StoreQuoteRequest;
use App\Models\Quote;

class QuoteController extends Controller
{
    public function index()
    {
        return view('quotes.index', ['quotes' => Quote::with('customer')->paginate()]);
    }

    public function create()
    {
        return view('quotes.create');
    }

    public function store(StoreQuoteRequest $request)
    {
        return redirect()->route('quotes.show', Quote::create($request->validated()));
    }

    public function show(Quote $quote)
    {
        return view('quotes.show', compact('quote'));
    }

    public function edit(Quote $quote)
    {
        return view('quotes.edit', compact('quote'));
    }

    public function update(StoreQuoteRequest $request, Quote $quote)
    {
        $quote->update($request->validated());

        return redirect()->route('quotes.show', $quote);
    }

    public function destroy(Quote $quote)
    {
        $quote->delete();

        return redirect()->route('quotes.index');
    }

    public function accept(Quote $quote, TurnQuoteIntoInvoice $action)
    {
        abort_if($quote->isExpired(), 410);

        return redirect()->route('invoices.show', $action->run($quote));
    }
}
