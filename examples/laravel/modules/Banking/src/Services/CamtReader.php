<?php

namespace Modules\Banking\Services;

use Modules\Banking\Contracts\StatementReader;

class CamtReader implements StatementReader
{
    public function read(string $path): iterable
    {
        $document = simplexml_load_file($path);
        foreach ($document->BkToCstmrStmt->Stmt->Ntry ?? [] as $entry) {
            yield [
                'amount' => (string) $entry->Amt,
                'booked_on' => (string) $entry->BookgDt->Dt,
                'reference' => (string) $entry->AcctSvcrRef,
            ];
        }
    }
}
