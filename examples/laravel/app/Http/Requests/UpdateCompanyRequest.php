<?php

namespace App\Http\Requests;

use Illuminate\Foundation\Http\FormRequest;

class UpdateCompanyRequest extends FormRequest
{
    public function rules(): array
    {
        return ['name' => 'required|string', 'vat_id' => 'nullable|string|max:20', 'currency_code' => 'size:3'];
    }
}
