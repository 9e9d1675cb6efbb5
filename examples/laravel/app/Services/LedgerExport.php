<?php

namespace App\Services;

use App\Models\Company;
use Illuminate\Support\Facades\DB;
use Illuminate\Support\Facades\Storage;

class LedgerExport
{
    public function write(Company $company, string $format): string
    {
        $path = "exports/{$company->id}.{$format}";
        $rows = DB::select('select number, issued_on, total from invoices where company_id = ?', [$company->id]);
        Storage::put($path, implode("\n", array_map(fn ($row) => implode(';', (array) $row), $rows)));

        return $path;
    }
}
