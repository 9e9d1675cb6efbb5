<?php

namespace App\Http\Resources;

use Illuminate\Http\Resources\Json\JsonResource;

class PaymentResource extends JsonResource
{
    public function toArray($request): array
    {
        return ['amount' => $this->amount, 'settled' => $this->settled_at !== null];
    }
}
