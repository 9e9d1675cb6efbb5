<?php

namespace App\Http\Controllers\Auth;

use App\Http\Controllers\Controller;
use Illuminate\Http\Request;
use Illuminate\Support\Facades\Auth;

class LoginController extends Controller
{
    public function show()
    {
        return view('auth.login');
    }

    public function store(Request $request)
    {
        $entered = $request->validate(['email' => 'required|email', 'password' => 'required']);
        if (! Auth::attempt($entered, $request->boolean('remember'))) {
            return back()->withErrors(['email' => __('auth.failed')]);
        }
        $request->session()->regenerate();

        return redirect()->intended(route('dashboard'));
    }

    public function destroy(Request $request)
    {
        Auth::logout();
        $request->session()->invalidate();

        return redirect()->route('home');
    }
}
