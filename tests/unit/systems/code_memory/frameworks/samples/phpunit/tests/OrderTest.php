<?php

namespace Tests\Feature;

use Tests\TestCase;

class OrderTest extends TestCase
{
    public function test_creates_an_order()
    {
        $this->actingAs($this->user)->postJson('/orders', ['total' => 1])->assertStatus(201);
    }

    public function test_shows_an_order()
    {
        $this->get("/orders/{$order->id}")->assertOk();
    }
}
