<?php

namespace App\Http\Requests;

use Illuminate\Foundation\Http\FormRequest;

class StorePaymentRequest extends FormRequest
{
    public function rules(): array
    {
        return ['amount' => 'required|numeric|gt:0', 'method' => 'in:transfer,card,cash,direct_debit'];
    }
}
