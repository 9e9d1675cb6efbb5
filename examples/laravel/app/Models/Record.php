<?php

namespace App\Models;

use Illuminate\Database\Eloquent\Factories\HasFactory;
use Illuminate\Database\Eloquent\Model;

/** What every record of this application has in common. */
abstract class Record extends Model
{
    use HasFactory;

    protected $perPage = 25;

    public static function booted(): void
    {
        static::preventLazyLoading(config('app.debug'));
    }
}
