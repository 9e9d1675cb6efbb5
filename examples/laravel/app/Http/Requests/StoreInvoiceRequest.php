<?php

namespace App\Http\Requests;

use App\Models\Invoice;
use Illuminate\Foundation\Http\FormRequest;
use Illuminate\Validation\Rule;

class StoreInvoiceRequest extends FormRequest
{
    public function authorize(): bool
    {
        return $this->user()->can('create', Invoice::class);
    }

    public function rules(): array
    {
        return [
            'customer_id' => ['required', Rule::exists('customers', 'id')],
            'issued_on' => 'required|date',
            'due_on' => 'nullable|date|after_or_equal:issued_on',
            'lines' => 'array|max:'.config('billing.limits.lines'),
            'lines.*.text' => 'required|string',
        ];
    }
}
