<?php

namespace App\Models;

class WebhookDelivery extends Record
{
    public function webhook()
    {
        return $this->belongsTo(Webhook::class);
    }
}
