<?php

namespace Modules\Banking\Http\Controllers;

use App\Http\Controllers\Controller;
use Illuminate\Http\Request;
use Modules\Banking\Contracts\StatementReader;
use Modules\Banking\Models\BankAccount;

class StatementImportController extends Controller
{
    public function __invoke(Request $request, BankAccount $account, StatementReader $reader)
    {
        foreach ($reader->read($request->file('statement')->path()) as $entry) {
            $account->transactions()->firstOrCreate(['reference' => $entry['reference']], $entry);
        }

        return redirect()->route('banking.accounts.show', $account);
    }
}
