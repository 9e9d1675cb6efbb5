<?php

use App\Http\Controllers\Auth\LoginController;
use App\Http\Controllers\Auth\PasswordController;
use App\Http\Controllers\Auth\RegisterController;
use App\Http\Controllers\InvitationController;
use Illuminate\Support\Facades\Route;

Route::middleware('guest')->group(function () {
    Route::get('login', [LoginController::class, 'show'])->name('login');
    Route::post('login', [LoginController::class, 'store'])->middleware('throttle:login');
    Route::get('register', [RegisterController::class, 'create'])->name('register');
    Route::post('register', [RegisterController::class, 'store']);
    Route::get('password/forgotten', [PasswordController::class, 'request'])->name('password.request');
    Route::post('password/forgotten', [PasswordController::class, 'email'])->name('password.email');
    Route::get('password/reset/{token}', [PasswordController::class, 'edit'])->name('password.reset');
    Route::put('password', [PasswordController::class, 'update'])->name('password.update');
});

Route::post('logout', [LoginController::class, 'destroy'])->middleware('auth')->name('logout');
Route::get('invitations/{invitation:token}', InvitationController::class)->name('invitations.accept');
