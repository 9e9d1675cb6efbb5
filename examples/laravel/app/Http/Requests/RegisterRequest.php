<?php

namespace App\Http\Requests;

use Illuminate\Foundation\Http\FormRequest;

class RegisterRequest extends FormRequest
{
    public function rules(): array
    {
        return ['name' => 'required', 'email' => 'required|email|unique:users', 'company' => 'required'];
    }
}
