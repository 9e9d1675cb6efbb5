<?php

namespace App\Policies;

use App\Models\Customer;
use App\Models\User;

class CustomerPolicy
{
    public function create(User $user): bool
    {
        return $user->hasAnyRole(['owner', 'accountant']);
    }

    public function delete(User $user, Customer $customer): bool
    {
        return ! $customer->invoices()->exists();
    }
}
