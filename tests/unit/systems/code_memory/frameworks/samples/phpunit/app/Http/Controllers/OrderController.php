<?php

namespace App\Http\Controllers;

class OrderController
{
    public function show() {}

    public function store() {}
}
