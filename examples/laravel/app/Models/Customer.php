<?php

namespace App\Models;

use App\Models\Concerns\HasComments;
use Illuminate\Database\Eloquent\SoftDeletes;

class Customer extends CompanyModel
{
    use HasComments, SoftDeletes;

    protected $fillable = ['company_id', 'name', 'email', 'payment_days', 'vat_id'];

    public function contacts()
    {
        return $this->hasMany(Contact::class);
    }

    public function primaryContact()
    {
        return $this->hasOne(Contact::class)->where('is_primary', true);
    }

    public function invoices()
    {
        return $this->hasMany(Invoice::class, 'customer_id', 'id');
    }

    public function latestInvoice()
    {
        return $this->hasOne(Invoice::class)->latestOfMany();
    }

    public function address()
    {
        return $this->morphOne(Address::class, 'addressable');
    }

    public function tags()
    {
        return $this->morphToMany(Tag::class, 'taggable')->withTimestamps();
    }

    public function recurringPlans()
    {
        return $this->hasMany('App\Models\RecurringPlan');
    }
}
