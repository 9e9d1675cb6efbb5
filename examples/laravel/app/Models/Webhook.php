<?php

namespace App\Models;

class Webhook extends CompanyModel
{
    protected $casts = ['events' => 'array'];

    public function deliveries()
    {
        return $this->hasMany(WebhookDelivery::class);
    }
}
