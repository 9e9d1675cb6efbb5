<?php

namespace App\Models;

use App\Models\Concerns\HasComments;

class Expense extends CompanyModel
{
    use HasComments;

    protected $guarded = ['id'];

    public function supplier()
    {
        return $this->belongsTo(Supplier::class);
    }

    public function category()
    {
        return $this->belongsTo(ExpenseCategory::class, 'expense_category_id');
    }

    public function receipt()
    {
        return $this->morphOne(Attachment::class, 'attachable')->oldestOfMany();
    }
}
