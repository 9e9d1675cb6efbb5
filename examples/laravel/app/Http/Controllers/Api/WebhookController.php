<?php

namespace App\Http\Controllers\Api;

use App\Http\Controllers\Controller;
use App\Http\Resources\WebhookResource;
use App\Jobs\DeliverWebhook;
use App\Models\Webhook;
use App\Models\WebhookDelivery;
use Illuminate\Http\Request;

class WebhookController extends Controller
{
    public function index()
    {
        return WebhookResource::collection(Webhook::all());
    }

    public function store(Request $request)
    {
        return new WebhookResource(Webhook::create($request->validate(['url' => 'required|url', 'events' => 'array'])));
    }

    public function destroy(Webhook $webhook)
    {
        $webhook->delete();

        return response()->noContent();
    }

    public function retry(Webhook $webhook, WebhookDelivery $delivery)
    {
        DeliverWebhook::dispatchSync($delivery);

        return response()->json(['attempts' => $delivery->refresh()->attempts]);
    }
}
