<?php

use Illuminate\Database\Migrations\Migration;
use Illuminate\Database\Schema\Blueprint;
use Illuminate\Support\Facades\Schema;

return new class extends Migration
{
    public function up(): void
    {
        Schema::rename('bank_transactions', 'bank_statement_entries');
        Schema::table('bank_statement_entries', function (Blueprint $table) {
            $table->foreignId('payment_id')->nullable()->after('amount')->constrained()->nullOnDelete();
        });
    }

    public function down(): void
    {
        Schema::table('bank_statement_entries', function (Blueprint $table) {
            $table->dropConstrainedForeignId('payment_id');
        });
        Schema::rename('bank_statement_entries', 'bank_transactions');
    }
};
