<?php

use Illuminate\Database\Migrations\Migration;
use Illuminate\Database\Schema\Blueprint;
use Illuminate\Support\Facades\Schema;

return new class extends Migration
{
    public function up(): void
    {
        Schema::table('credit_notes', function (Blueprint $table) {
            $table->dropForeign('credit_notes_customer_id_foreign');
        });
        Schema::table('memberships', function (Blueprint $table) {
            $table->dropUnique('company_user_company_id_user_id_unique');
            $table->unique(['company_id', 'user_id', 'role']);
        });
    }
};
