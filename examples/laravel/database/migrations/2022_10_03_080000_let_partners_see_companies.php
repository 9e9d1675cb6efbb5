<?php

use Illuminate\Database\Migrations\Migration;
use Illuminate\Database\Schema\Blueprint;
use Illuminate\Support\Facades\Schema;

return new class extends Migration
{
    public function up(): void
    {
        Schema::table('companies', function (Blueprint $table) {
            $table->after('parent_id', function (Blueprint $table) {
                $table->unsignedBigInteger('partner_id')->nullable()->index();
                $table->string('logo_path')->nullable();
            });
            $table->text('note')->nullable();
        });
    }

    public function down(): void
    {
        Schema::table('companies', function (Blueprint $table) {
            $table->dropIndex('companies_partner_id_index');
            $table->dropColumn(['partner_id', 'logo_path', 'note']);
        });
    }
};
