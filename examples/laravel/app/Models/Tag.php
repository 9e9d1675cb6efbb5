<?php

namespace App\Models;

class Tag extends CompanyModel
{
    public function getRouteKeyName()
    {
        return 'slug';
    }

    public function invoices()
    {
        return $this->morphedByMany(Invoice::class, 'taggable');
    }

    public function customers()
    {
        return $this->morphedByMany(Customer::class, 'taggable', 'taggables', 'tag_id', 'taggable_id');
    }
}
