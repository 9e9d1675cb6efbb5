<?php

namespace App\Services;

use App\Models\Company;
use App\Models\NumberSequence;
use Illuminate\Support\Facades\DB;

/** Numbers without gaps: a series is locked while its next number is taken. */
class InvoiceNumbering
{
    public function next(string $series = 'invoice'): string
    {
        return DB::transaction(function () use ($series) {
            $sequence = NumberSequence::query()
                ->where(['company_id' => app(Company::class)->id, 'series' => $series])
                ->lockForUpdate()
                ->firstOrFail();
            $sequence->increment('next');

            return strtr($sequence->pattern, ['{year}' => date('Y'), '{n}' => (string) $sequence->next]);
        });
    }

    public function preview(string $pattern): string
    {
        return strtr($pattern, ['{year}' => date('Y'), '{n}' => '1']);
    }
}
