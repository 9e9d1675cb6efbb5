<?php

namespace App\Models;

class RecurringPlan extends DocumentModel
{
    protected $table = 'subscriptions';

    protected $casts = ['template' => 'array'];
}
