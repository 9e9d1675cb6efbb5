<?php

use Illuminate\Database\Migrations\Migration;
use Illuminate\Database\Schema\Blueprint;
use Illuminate\Support\Facades\Schema;

return new class extends Migration
{
    public function up(): void
    {
        Schema::create('exchange_rates', function (Blueprint $table) {
            $table->char('currency_code', 3);
            $table->date('quoted_on');
            $table->decimal('rate', 16, 8);
            $table->primary(['currency_code', 'quoted_on']);
            $table->foreign('currency_code')
                ->references('code')
                ->on('currencies')
                ->onUpdate('cascade')
                ->onDelete('cascade');
        });
    }

    public function down(): void
    {
        Schema::dropIfExists('exchange_rates');
    }
};
