<?php

use Illuminate\Database\Migrations\Migration;
use Illuminate\Support\Facades\DB;

return new class extends Migration
{
    public function up(): void
    {
        DB::unprepared("ALTER TABLE number_sequences ADD COLUMN resets VARCHAR(10) DEFAULT 'never'; CREATE INDEX number_sequences_next ON number_sequences (next);");
    }

    public function down(): void
    {
        DB::statement('ALTER TABLE number_sequences DROP COLUMN resets');
    }
};
