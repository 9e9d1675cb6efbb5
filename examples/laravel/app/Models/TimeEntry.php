<?php

namespace App\Models;

class TimeEntry extends Record
{
    protected $guarded = ['id'];

    public function project()
    {
        return $this->belongsTo(Project::class);
    }

    public function user()
    {
        return $this->belongsTo(User::class);
    }

    public function billedLine()
    {
        return $this->belongsTo(InvoiceLine::class);
    }
}
