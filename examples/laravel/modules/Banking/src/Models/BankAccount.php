<?php

namespace Modules\Banking\Models;

use App\Models\CompanyModel;
use Illuminate\Database\Eloquent\Relations\HasMany;

class BankAccount extends CompanyModel
{
    protected $fillable = ['company_id', 'iban', 'bic', 'label'];

    public function transactions(): HasMany
    {
        return $this->hasMany(BankTransaction::class);
    }

    public function latestTransaction()
    {
        return $this->hasOne(BankTransaction::class)->latestOfMany('booked_on');
    }
}
