<?php

namespace App\Models;

class QuoteLine extends Record
{
    public function quote()
    {
        return $this->belongsTo(Quote::class);
    }
}
