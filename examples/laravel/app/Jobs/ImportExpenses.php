<?php

namespace App\Jobs;

use App\Models\Expense;
use App\Models\ExpenseCategory;
use Illuminate\Bus\Queueable;
use Illuminate\Contracts\Queue\ShouldQueue;
use Illuminate\Foundation\Bus\Dispatchable;
use Illuminate\Support\Facades\Storage;

class ImportExpenses implements ShouldQueue
{
    use Dispatchable, Queueable;

    public function __construct(private string $path)
    {
    }

    public function handle(): void
    {
        foreach (explode("\n", Storage::get($this->path)) as $row) {
            [$category, $amount, $day] = str_getcsv($row);
            Expense::create([
                'expense_category_id' => ExpenseCategory::firstOrCreate(['name' => $category])->id,
                'amount' => $amount,
                'spent_on' => $day,
            ]);
        }
    }
}
