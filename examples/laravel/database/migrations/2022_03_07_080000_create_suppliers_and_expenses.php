<?php

use App\Models\Company;
use App\Models\Supplier;
use Illuminate\Database\Migrations\Migration;
use Illuminate\Database\Schema\Blueprint;
use Illuminate\Support\Facades\Schema;

return new class extends Migration
{
    public function up(): void
    {
        Schema::create('suppliers', static function (Blueprint $table): void {
            $table->id();
            $table->foreignIdFor(Company::class)->constrained()->cascadeOnDelete();
            $table->string('name');
            $table->softDeletesTz();
            $table->timestamps();
        });

        Schema::create('expense_categories', static function (Blueprint $table): void {
            $table->tinyIncrements('id');
            $table->string('name', 80)->unique();
            $table->set('uses', ['travel', 'office'])->nullable();
        });

        Schema::create('expenses', static function (Blueprint $table): void {
            $table->id();
            $table->foreignIdFor(Company::class)->constrained();
            $table->foreignIdFor(Supplier::class)->nullable()->constrained()->nullOnDelete();
            $table->unsignedTinyInteger('expense_category_id')->nullable();
            $table->unsignedDecimal('amount', 12, 2);
            $table->year('fiscal_year')->nullable();
            $table->date('spent_on');
            $table->time('spent_at')->nullable();
            $table->timestamps();
            $table->foreign('expense_category_id')->references('id')->on('expense_categories');
        });
    }

    public function down(): void
    {
        Schema::dropIfExists('expenses');
        Schema::dropIfExists('expense_categories');
        Schema::dropIfExists('suppliers');
    }
};
