<?php

use Illuminate\Database\Migrations\Migration;
use Illuminate\Database\Schema\Blueprint;
use Illuminate\Support\Facades\Schema;

return new class extends Migration
{
    public function up(): void
    {
        Schema::table('payments', function (Blueprint $table) {
            $table->timestamp('settled_at')->nullable()->after('received_on');
            $table->dropIndex(['provider_reference']);
        });
        Schema::table('payments', function (Blueprint $table) {
            $table->unique(['method', 'provider_reference'], 'payments_provider_reference');
        });
    }

    public function down(): void
    {
        Schema::table('payments', function (Blueprint $table) {
            $table->dropUnique('payments_provider_reference');
        });
    }
};
