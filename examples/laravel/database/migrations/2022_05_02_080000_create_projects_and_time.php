<?php

use Illuminate\Database\Migrations\Migration;
use Illuminate\Database\Schema\Blueprint;
use Illuminate\Support\Facades\Schema;

return new class extends Migration
{
    public function up(): void
    {
        Schema::create('projects', function (Blueprint $table) {
            $table->id();
            $table->foreignId('company_id')->constrained()->cascadeOnDelete();
            $table->foreignId('customer_id')->nullable()->constrained()->nullOnDelete();
            $table->string('name');
            $table->mediumInteger('budget_hours')->nullable();
            $table->timestamps();
        });

        Schema::create('time_entries', function (Blueprint $table) {
            $table->id();
            $table->foreignId('project_id')->constrained()->cascadeOnDelete();
            $table->foreignId('user_id')->constrained();
            $table->foreignId('billed_line_id')->nullable()->constrained('invoice_lines')->nullOnDelete();
            $table->dateTime('started_at', 0);
            $table->dateTimeTz('ended_at')->nullable();
            $table->smallInteger('minutes')->virtualAs('(strftime(\'%s\', ended_at) - strftime(\'%s\', started_at)) / 60');
            $table->string('note')->default('');
            $table->timestamps();
        });
    }

    public function down(): void
    {
        Schema::dropIfExists('time_entries');
        Schema::dropIfExists('projects');
    }
};
