<?php

namespace App\Models;

class Comment extends Record
{
    protected $fillable = ['body', 'user_id'];

    public function commentable()
    {
        return $this->morphTo();
    }

    public function author()
    {
        return $this->belongsTo(User::class, 'user_id')->withDefault();
    }
}
