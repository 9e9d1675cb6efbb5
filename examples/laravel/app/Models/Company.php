<?php

namespace App\Models;

use Illuminate\Database\Eloquent\Relations\BelongsToMany;
use Illuminate\Database\Eloquent\Relations\HasMany;
use Illuminate\Database\Eloquent\Relations\HasManyThrough;
use Illuminate\Database\Eloquent\SoftDeletes;

class Company extends Record
{
    use SoftDeletes;

    protected $fillable = ['name', 'vat_id', 'currency_code', 'logo_path', 'note'];

    protected $casts = ['settings' => 'array', 'suspended_at' => 'datetime'];

    public function members(): BelongsToMany
    {
        return $this->belongsToMany(User::class, 'memberships', 'company_id', 'user_id')
            ->using(Membership::class)
            ->withPivot('role', 'joined_at')
            ->withTimestamps()
            ->as('membership');
    }

    public function customers(): HasMany
    {
        return $this->hasMany(Customer::class);
    }

    public function invoices(): HasMany
    {
        return $this->hasMany(Invoice::class)->orderBy('issued_on');
    }

    /** All lines of all invoices. */
    public function invoiceLines(): HasManyThrough
    {
        return $this->hasManyThrough(InvoiceLine::class, Invoice::class);
    }

    public function payments()
    {
        return $this->hasManyThrough(Payment::class, Invoice::class, 'company_id', 'invoice_id', 'id', 'id');
    }

    public function address()
    {
        return $this->morphOne(Address::class, 'addressable');
    }

    public function currency()
    {
        return $this->belongsTo(Currency::class, 'currency_code', 'code');
    }

    public function parent()
    {
        return $this->belongsTo(self::class, 'parent_id');
    }

    public function subsidiaries()
    {
        return $this->hasMany(static::class, 'parent_id');
    }
}
