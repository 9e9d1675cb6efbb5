<?php

namespace App\Models;

class Role extends Record
{
    public $timestamps = false;

    public function users()
    {
        return $this->belongsToMany(User::class);
    }
}
