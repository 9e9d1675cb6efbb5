<?php

namespace App\Models\Concerns;

use App\Models\Company;
use Illuminate\Database\Eloquent\Builder;
use Illuminate\Database\Eloquent\Relations\BelongsTo;

trait BelongsToCompany
{
    public function company(): BelongsTo
    {
        return $this->belongsTo(Company::class);
    }

    public function scopeOfCompany(Builder $query, Company $company): Builder
    {
        return $query->where($this->qualifyColumn('company_id'), $company->id);
    }
}
