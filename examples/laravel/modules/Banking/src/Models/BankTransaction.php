<?php

namespace Modules\Banking\Models;

use App\Models\Payment;
use App\Models\Record;

class BankTransaction extends Record
{
    protected $table = 'bank_statement_entries';

    protected $fillable = ['bank_account_id', 'payment_id', 'amount', 'booked_on', 'reference', 'note'];

    public function account()
    {
        return $this->belongsTo(BankAccount::class, 'bank_account_id');
    }

    public function payment()
    {
        return $this->belongsTo(Payment::class);
    }
}
