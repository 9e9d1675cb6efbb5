<?php

use Illuminate\Database\Migrations\Migration;
use Illuminate\Database\Schema\Blueprint;
use Illuminate\Support\Facades\DB;
use Illuminate\Support\Facades\Schema;

return new class extends Migration
{
    public function up(): void
    {
        Schema::table('invoices', function (Blueprint $table) {
            $table->renameIndex('invoices_due', 'invoices_due_on');
        });
        if (DB::getDriverName() === 'mysql') {
            DB::statement('ALTER TABLE invoices ENGINE = InnoDB');
        }
    }

    public function down(): void
    {
        Schema::table('invoices', fn (Blueprint $table) => $table->renameIndex('invoices_due_on', 'invoices_due'));
    }
};
