<?php

namespace App\Models;

class Product extends CompanyModel
{
    protected $fillable = ['company_id', 'sku', 'name', 'unit_price', 'tax_rate_id'];

    protected $casts = ['unit_price' => 'decimal:2'];

    public function taxRate()
    {
        return $this->belongsTo(TaxRate::class)->withDefault(['percent' => 0]);
    }

    public function categories()
    {
        return $this->belongsToMany(ProductCategory::class, 'category_product', 'product_id', 'category_id');
    }

    public function scopeActive($query)
    {
        return $query->whereNull('discontinued_at');
    }
}
