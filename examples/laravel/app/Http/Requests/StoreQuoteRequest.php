<?php

namespace App\Http\Requests;

use Illuminate\Foundation\Http\FormRequest;

class StoreQuoteRequest extends FormRequest
{
    public function rules(): array
    {
        return ['customer_id' => 'required|exists:customers,id', 'valid_until' => 'nullable|date'];
    }
}
