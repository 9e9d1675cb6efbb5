<?php

namespace App\Models;

/** A plan that is billed once a year; it shares its parent's table. */
class YearlyPlan extends RecurringPlan
{
    protected $attributes = ['interval' => 'year'];
}
