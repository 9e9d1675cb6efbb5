<?php

namespace App\Models;

use Illuminate\Database\Eloquent\Relations\HasMany;
use Illuminate\Database\Eloquent\Relations\HasOne;
use Illuminate\Database\Eloquent\Relations\MorphToMany;
use Illuminate\Database\Eloquent\SoftDeletes;

/**
 * An invoice, from its draft on.
 *
 * @property string $number
 */
class Invoice extends DocumentModel
{
    use SoftDeletes;

    protected $guarded = ['id', 'public_id'];

    protected $casts = [
        'issued_on' => 'date',
        'due_on' => 'date',
        'total' => 'decimal:2',
        'paid_at' => 'datetime',
    ];

    public function lines(): HasMany
    {
        return $this->hasMany(InvoiceLine::class)->orderBy('position');
    }

    public function payments(): HasMany
    {
        return $this->hasMany(Payment::class);
    }

    public function allocatedPayments()
    {
        return $this->belongsToMany(Payment::class, 'payment_allocations')->withPivot('amount');
    }

    public function largestPayment(): HasOne
    {
        return $this->hasOne(Payment::class)->ofMany(['amount' => 'max', 'id' => 'max'], function ($query) {
            $query->whereNotNull('settled_at');
        });
    }

    public function reminders()
    {
        return $this->hasMany(Reminder::class);
    }

    public function creditNotes()
    {
        return $this->hasMany(CreditNote::class);
    }

    public function quote()
    {
        return $this->hasOne(Quote::class, 'invoice_id');
    }

    public function currency()
    {
        return $this->belongsTo(Currency::class, 'currency_code', 'code');
    }

    public function tags(): MorphToMany
    {
        return $this->morphToMany(Tag::class, 'taggable');
    }

    public function auditEntries()
    {
        return $this->morphMany(AuditEntry::class, 'subject');
    }

    public function scopeOverdue($query)
    {
        return $query->whereNull('paid_at')->whereDate('due_on', '<', now());
    }

    public function getOpenAmountAttribute(): string
    {
        return bcsub($this->total, $this->payments->sum('amount'), 2);
    }
}
