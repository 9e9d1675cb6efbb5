<?php

use Illuminate\Database\Migrations\Migration;
use Illuminate\Database\Schema\Blueprint;
use Illuminate\Support\Facades\Schema;

class CreateInvoiceLinesTable extends Migration
{
    public function up()
    {
        Schema::create('invoice_lines', function (Blueprint $table) {
            $table->id();
            $table->foreignId('invoice_id')->constrained()->cascadeOnDelete();
            $table->foreignId('product_id')->nullable()->constrained()->nullOnDelete();
            $table->foreignId('tax_rate_id')->constrained();
            $table->unsignedInteger('position');
            $table->mediumText('text');
            $table->decimal('quantity', 10, 3)->default(1);
            $table->decimal('unit_price', 12, 2);
            $table->decimal('net', 12, 2)->storedAs('quantity * unit_price');
            $table->timestamps();
            $table->unique(['invoice_id', 'position']);
        });
    }

    public function down()
    {
        Schema::dropIfExists('invoice_lines');
    }
}
