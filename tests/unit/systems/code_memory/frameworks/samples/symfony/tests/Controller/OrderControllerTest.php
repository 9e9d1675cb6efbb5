<?php

namespace App\Tests\Controller;

final class OrderControllerTest extends WebTestCase
{
    public function testEdit(): void
    {
        $client = static::createClient();
        $client->request('GET', '/en/orders/1/edit');
    }
}
