<?php

namespace App\Models;

use App\Traits\Priced;

interface Payable {}

class Invoice extends Model implements Payable
{
    use Priced;

    const MAX_LINES = 10;

    public function total(Rates $rates): int
    {
        $made = new Line($this);
        Audit::record($made);
        helper($made);
        return $rates->load()->sum($this->lines);
    }
}

function helper($line) {}
