<?php

namespace App\Http\Requests;

use Illuminate\Foundation\Http\FormRequest;

class StoreCustomerRequest extends FormRequest
{
    public function rules(): array
    {
        return ['name' => 'required|string|max:255', 'email' => 'nullable|email', 'payment_days' => 'integer|min:0'];
    }
}
