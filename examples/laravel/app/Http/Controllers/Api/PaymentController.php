<?php

namespace App\Http\Controllers\Api;

use App\Http\Controllers\Controller;
use App\Http\Requests\StorePaymentRequest;
use App\Http\Resources\PaymentResource;
use App\Models\Invoice;

class PaymentController extends Controller
{
    public function index(Invoice $invoice)
    {
        return PaymentResource::collection($invoice->payments);
    }

    public function store(StorePaymentRequest $request, Invoice $invoice)
    {
        return new PaymentResource($invoice->payments()->create($request->validated()));
    }
}
