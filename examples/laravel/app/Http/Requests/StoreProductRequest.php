<?php

namespace App\Http\Requests;

use Illuminate\Foundation\Http\FormRequest;

class StoreProductRequest extends FormRequest
{
    public function rules(): array
    {
        return ['sku' => 'required|string|max:40', 'name' => 'required', 'unit_price' => 'required|numeric'];
    }
}
