<?php

use Illuminate\Database\Migrations\Migration;
use Illuminate\Database\Schema\Blueprint;
use Illuminate\Support\Facades\Schema;

class CreateContactsTable extends Migration
{
    public function up()
    {
        Schema::create('contacts', function (Blueprint $table) {
            $table->id();
            $table->foreignId('customer_id')->constrained()->cascadeOnDelete();
            $table->string('name');
            $table->string('email')->nullable();
            $table->string('telephone', 40)->nullable();
            $table->boolean('is_primary')->default(0);
            $table->timestamps();
            $table->index(['customer_id', 'is_primary'], 'contacts_primary');
        });
    }

    public function down()
    {
        Schema::dropIfExists('contacts');
    }
}
