<?php

use Illuminate\Database\Migrations\Migration;
use Illuminate\Database\Schema\Blueprint;
use Illuminate\Support\Facades\Schema;

return new class extends Migration
{
    public function up(): void
    {
        Schema::create('dunning_reminders', function (Blueprint $table) {
            $table->id();
            $table->foreignId('invoice_id')->constrained()->cascadeOnDelete();
            $table->unsignedTinyInteger('level')->default(1);
            $table->date('due_on');
            $table->string('message_id', 120)->nullable()->unique();
            $table->timestamp('bounced_at')->nullable();
            $table->timestamps();
            $table->index(['invoice_id', 'level']);
        });
    }

    public function down(): void
    {
        Schema::dropIfExists('dunning_reminders');
    }
};
