<?php

namespace App\Models;

class ProductCategory extends CompanyModel
{
    public function parent()
    {
        return $this->belongsTo(ProductCategory::class);
    }

    public function products()
    {
        return $this->belongsToMany(
            related: Product::class,
            table: 'category_product',
            foreignPivotKey: 'category_id',
            relatedPivotKey: 'product_id',
        );
    }
}
