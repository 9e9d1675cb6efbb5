<?php

namespace App\Models;

use Illuminate\Foundation\Auth\User as Authenticatable;
use Illuminate\Notifications\Notifiable;

class User extends Authenticatable
{
    use Notifiable;

    protected $fillable = ['name', 'email', 'password', 'locale'];

    protected $hidden = ['password', 'remember_token'];

    protected $casts = ['is_operator' => 'boolean', 'email_verified_at' => 'datetime'];

    public function memberships()
    {
        return $this->hasMany(Membership::class);
    }

    public function companies()
    {
        return $this->belongsToMany(Company::class, 'memberships')->using(Membership::class)->withPivot(['role']);
    }

    public function roles()
    {
        return $this->belongsToMany(Role::class);
    }

    public function latestTimeEntry()
    {
        return $this->hasOne(TimeEntry::class)->ofMany('started_at', 'max');
    }

    public function auditEntries()
    {
        return $this->morphMany(AuditEntry::class, 'actor');
    }

    public function hasAnyRole(array $roles): bool
    {
        return $this->roles->pluck('name')->intersect($roles)->isNotEmpty();
    }

    public function belongsToCompany(int $company): bool
    {
        return $this->memberships()->where('company_id', $company)->exists();
    }
}
