<?php

namespace Tests\Feature;

use App\Events\InvoiceSent;
use App\Models\Invoice;
use App\Models\User;
use Illuminate\Support\Facades\Event;
use Tests\TestCase;

/** @covers \App\Http\Controllers\InvoiceController */
class InvoiceTest extends TestCase
{
    public function test_a_draft_gets_a_number(): void
    {
        $this->actingAs(User::factory()->create())
            ->post(route('invoices.store'), ['customer_id' => 1, 'issued_on' => '2023-01-01'])
            ->assertRedirect();

        $this->assertDatabaseHas('invoices', ['number' => '2023-1']);
    }

    public function test_sending_fires_an_event(): void
    {
        Event::fake();
        $invoice = Invoice::factory()->create();

        $this->post("/invoices/{$invoice->id}/send");

        Event::assertDispatched(InvoiceSent::class);
    }
}
