<?php

namespace App\Http\Requests;

use Illuminate\Foundation\Http\FormRequest;

class StoreExpenseRequest extends FormRequest
{
    public function rules(): array
    {
        return ['amount' => 'required|numeric', 'spent_on' => 'required|date'];
    }
}
