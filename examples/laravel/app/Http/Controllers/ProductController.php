<?php

namespace App\Http\Controllers;

use App\Http\Requests\StoreProductRequest;
use App\Models\Product;

class ProductController extends Controller
{
    public function index()
    {
        return view('products.index', ['products' => Product::query()->latest()->paginate()]);
    }

    public function create()
    {
        return view('products.create');
    }

    public function store(StoreProductRequest $request)
    {
        $article = Product::query()->create($request->validated());

        return redirect()->route('products.show', $article);
    }

    public function show(Product $article)
    {
        return view('products.show', compact('article'));
    }

    public function edit(Product $article)
    {
        return view('products.edit', compact('article'));
    }

    public function update(StoreProductRequest $request, Product $article)
    {
        $article->update($request->validated());

        return redirect()->route('products.show', $article);
    }

    public function destroy(Product $article)
    {
        $article->delete();

        return back();
    }
}
