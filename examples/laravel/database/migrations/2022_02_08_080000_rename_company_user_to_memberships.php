<?php

use Illuminate\Database\Migrations\Migration;
use Illuminate\Database\Schema\Blueprint;
use Illuminate\Support\Facades\Schema;

return new class extends Migration
{
    public function up(): void
    {
        Schema::rename('company_user', 'memberships');
        Schema::table('memberships', function (Blueprint $table) {
            $table->timestamp('joined_at')->nullable();
            $table->nullableTimestamps();
        });
    }

    public function down(): void
    {
        Schema::rename('memberships', 'company_user');
    }
};
