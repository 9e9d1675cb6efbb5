<?php

use Illuminate\Database\Migrations\Migration;
use Illuminate\Database\Schema\Blueprint;
use Illuminate\Support\Facades\Schema;

return new class extends Migration
{
    public function up(): void
    {
        Schema::create('audit_entries', function (Blueprint $table) {
            $table->uuid('uuid')->primary();
            $table->uuidMorphs('subject');
            $table->nullableUuidMorphs('actor', 'audit_actor');
            $table->string('action', 60);
            $table->jsonb('changes')->nullable();
            $table->ipAddress('ip')->nullable();
            $table->timestampTz('at', 3)->useCurrent();
            $table->timestampsTz();
        });
    }

    public function down(): void
    {
        Schema::dropIfExists('audit_entries');
    }
};
