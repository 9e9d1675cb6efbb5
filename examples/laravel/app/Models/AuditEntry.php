<?php

namespace App\Models;

class AuditEntry extends Record
{
    protected $connection = 'audit';

    protected $primaryKey = 'uuid';

    protected $keyType = 'string';

    public $incrementing = false;

    public function subject()
    {
        return $this->morphTo();
    }

    public function actor()
    {
        return $this->morphTo('actor');
    }
}
