<?php

namespace App\Models;

use App\Models\Concerns\BelongsToCompany;

/** A record that belongs to one company and is read by its members alone. */
abstract class CompanyModel extends Record
{
    use BelongsToCompany;
}
