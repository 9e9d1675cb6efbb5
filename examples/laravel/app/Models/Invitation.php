<?php

namespace App\Models;

class Invitation extends CompanyModel
{
    protected $fillable = ['company_id', 'email', 'role', 'token'];

    public function inviter()
    {
        return $this->belongsTo(User::class, 'invited_by');
    }
}
