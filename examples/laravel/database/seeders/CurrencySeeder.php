<?php

namespace Database\Seeders;

use Illuminate\Database\Seeder;
use Illuminate\Support\Facades\DB;

class CurrencySeeder extends Seeder
{
    public function run(): void
    {
        DB::table('currencies')->insert([['code' => 'EUR', 'name' => 'Euro'], ['code' => 'CHF', 'name' => 'Franken']]);
    }
}
