<?php

namespace App\Http\Controllers\Auth;

use App\Http\Controllers\Controller;
use Illuminate\Http\Request;
use Illuminate\Support\Facades\Password;

class PasswordController extends Controller
{
    public function request()
    {
        return view('auth.forgotten');
    }

    public function email(Request $request)
    {
        Password::sendResetLink($request->validate(['email' => 'required|email']));

        return back();
    }

    public function edit(string $token)
    {
        return view('auth.reset', compact('token'));
    }

    public function update(Request $request)
    {
        $request->validate(['password' => 'required|confirmed|min:12']);

        return redirect()->route('login');
    }
}
