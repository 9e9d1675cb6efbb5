<?php

namespace App\Models\Concerns;

use App\Models\Attachment;
use App\Models\Comment;

trait HasComments
{
    public function comments()
    {
        return $this->morphMany(Comment::class, 'commentable');
    }

    public function attachments()
    {
        return $this->morphMany(Attachment::class, 'attachable', 'attachable_type', 'attachable_id');
    }
}
