<?php

use Illuminate\Database\Migrations\Migration;
use Illuminate\Database\Schema\Blueprint;
use Illuminate\Support\Facades\Schema;

return new class extends Migration
{
    public function up(): void
    {
        foreach (['voided_at', 'archived_at'] as $column) {
            Schema::table('invoices', function (Blueprint $table) use ($column) {
                $table->timestamp($column)->nullable();
            });
        }
        if (! Schema::hasColumn('invoices', 'footer')) {
            Schema::table('invoices', fn (Blueprint $table) => $table->text('footer')->nullable());
        }
    }

    public function down(): void
    {
        Schema::table('invoices', function (Blueprint $table) {
            $table->dropColumn(['voided_at', 'archived_at']);
        });
    }
};
