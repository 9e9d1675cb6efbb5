<?php

namespace App\Models;

class ExpenseCategory extends Record
{
    public $timestamps = false;

    public function expenses()
    {
        return $this->hasMany(Expense::class);
    }
}
