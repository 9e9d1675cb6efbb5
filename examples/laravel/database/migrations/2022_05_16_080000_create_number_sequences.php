<?php

use Illuminate\Database\Migrations\Migration;
use Illuminate\Support\Facades\DB;

return new class extends Migration
{
    public function up(): void
    {
        DB::statement(<<<'SQL'
            CREATE TABLE number_sequences (
                id INTEGER PRIMARY KEY AUTOINCREMENT NOT NULL,
                company_id INTEGER NOT NULL REFERENCES companies (id) ON DELETE CASCADE,
                series VARCHAR(20) NOT NULL DEFAULT 'invoice',
                pattern VARCHAR(40) NOT NULL,
                next INTEGER NOT NULL DEFAULT 1,
                created_at DATETIME,
                updated_at DATETIME,
                UNIQUE (company_id, series)
            )
            SQL);
    }

    public function down(): void
    {
        DB::statement('DROP TABLE number_sequences');
    }
};
