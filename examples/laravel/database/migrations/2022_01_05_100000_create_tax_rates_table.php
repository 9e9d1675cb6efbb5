<?php

use Illuminate\Database\Migrations\Migration;
use Illuminate\Database\Schema\Blueprint;
use Illuminate\Support\Facades\Schema;

class CreateTaxRatesTable extends Migration
{
    public function up()
    {
        Schema::create('tax_rates', function (Blueprint $table) {
            $table->id();
            $table->foreignId('company_id')->constrained()->cascadeOnDelete();
            $table->string('name', 60);
            $table->decimal('percent', 5, 2);
            $table->date('valid_from')->nullable();
            $table->timestamps();
            $table->unique(['company_id', 'name', 'valid_from'], 'tax_rates_once');
        });
    }

    public function down()
    {
        Schema::dropIfExists('tax_rates');
    }
}
