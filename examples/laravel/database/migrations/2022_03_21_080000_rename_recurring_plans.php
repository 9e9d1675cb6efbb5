<?php

use Illuminate\Database\Migrations\Migration;
use Illuminate\Database\Schema\Blueprint;
use Illuminate\Support\Facades\Schema;

return new class extends Migration
{
    public function up(): void
    {
        Schema::table('recurring_plans', function (Blueprint $table) {
            $table->rename('subscriptions');
        });
    }

    public function down(): void
    {
        Schema::rename('subscriptions', 'recurring_plans');
    }
};
