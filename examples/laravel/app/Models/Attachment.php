<?php

namespace App\Models;

class Attachment extends Record
{
    public function attachable()
    {
        return $this->morphTo(__FUNCTION__, 'attachable_type', 'attachable_id');
    }
}
