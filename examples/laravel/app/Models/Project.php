<?php

namespace App\Models;

class Project extends CompanyModel
{
    public function customer()
    {
        return $this->belongsTo(Customer::class);
    }

    public function timeEntries()
    {
        return $this->hasMany(TimeEntry::class);
    }

    public function people()
    {
        return $this->belongsToMany(User::class, 'time_entries')->distinct();
    }
}
