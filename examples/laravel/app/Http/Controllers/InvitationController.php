<?php

namespace App\Http\Controllers;

use App\Models\Invitation;
use App\Models\Membership;
use Illuminate\Support\Facades\Auth;

class InvitationController extends Controller
{
    public function __invoke(Invitation $invitation)
    {
        Membership::firstOrCreate(
            ['company_id' => $invitation->company_id, 'user_id' => Auth::id()],
            ['role' => $invitation->role],
        );
        $invitation->delete();

        return redirect()->route('dashboard');
    }
}
