<?php

namespace App\Http\Requests;

use Illuminate\Foundation\Http\FormRequest;

class StoreInvoiceLineRequest extends FormRequest
{
    public function rules(): array
    {
        return ['text' => 'required|string', 'quantity' => 'numeric', 'tax_rate_id' => 'exists:tax_rates,id'];
    }
}
