<?php

namespace App\Policies;

use App\Models\Invoice;
use App\Models\User;

class InvoicePolicy
{
    public function viewAny(User $user): bool
    {
        return true;
    }

    public function view(User $user, Invoice $invoice): bool
    {
        return $user->belongsToCompany($invoice->company_id);
    }

    public function create(User $user): bool
    {
        return $user->hasAnyRole(['owner', 'accountant']);
    }

    public function update(User $user, Invoice $invoice): bool
    {
        return $this->view($user, $invoice) && $invoice->sent_at === null;
    }

    public function delete(User $user, Invoice $invoice): bool
    {
        return $this->update($user, $invoice);
    }

    public function send(User $user, Invoice $invoice): bool
    {
        return $this->view($user, $invoice);
    }

    public function void(User $user, Invoice $invoice): bool
    {
        return $this->create($user) && $invoice->paid_at === null;
    }
}
