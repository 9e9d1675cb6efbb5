<?php

use Illuminate\Database\Migrations\Migration;
use Illuminate\Database\Schema\Blueprint;
use Illuminate\Support\Facades\Schema;

class CreateInvoicesTable extends Migration
{
    public function up()
    {
        Schema::create('invoices', function (Blueprint $table) {
            $table->id();
            $table->uuid('public_id')->unique();
            $table->foreignId('company_id')->constrained();
            $table->foreignId('customer_id')->constrained()->restrictOnDelete();
            $table->string('number', 40)->nullable();
            $table->date('issued_on');
            $table->date('due_on')->nullable()->index('invoices_due');
            $table->decimal('net', 12, 2)->default(0);
            $table->decimal('tax', 12, 2)->default(0);
            $table->string('state')->default('draft');
            $table->text('footer')->nullable();
            $table->timestamp('sent_at')->nullable();
            $table->timestamp('paid_at')->nullable();
            $table->timestamps();
            $table->softDeletes();
            $table->unique(['company_id', 'number']);
        });
    }

    public function down()
    {
        Schema::dropIfExists('invoices');
    }
}
