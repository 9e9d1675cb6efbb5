<?php

namespace App\Policies;

use App\Models\User;

class ExpensePolicy
{
    public function viewAny(User $user): bool
    {
        return $user->hasAnyRole(['owner', 'accountant']);
    }

    public function export(User $user): bool
    {
        return $this->viewAny($user);
    }
}
