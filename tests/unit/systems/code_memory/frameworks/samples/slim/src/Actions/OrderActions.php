<?php

namespace App\Actions;

class ListOrdersAction
{
    public function __invoke(Request $request, Response $response): Response { return $response; }
}

class OrderActions
{
    public function change(Request $request, Response $response): Response { return $response; }
    public function items(Request $request, Response $response): Response { return $response; }
}
