<?php

namespace App\Jobs;

use App\Models\Company;
use App\Services\LedgerExport;
use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\ShouldBeUnique;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Foundation\Bus\Dispatchable;

class ExportLedger implements ShouldBeUnique, ShouldQueue
{
    use Dispatchable, Queueable;

    public function __construct(private Company $company, private string $format)
    {
    }

    public function handle(LedgerExport $export): void
    {
        $export->write($this->company, $this->format);
    }
}
