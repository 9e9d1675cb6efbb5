<?php

namespace App\Http\Resources;

use Illuminate\Http\Resources\Json\JsonResource;

/** @mixin \App\Models\Invoice */
class InvoiceResource extends JsonResource
{
    public function toArray($request): array
    {
        return [
            'id' => $this->public_id,
            'number' => $this->number,
            'total' => $this->total,
            'customer' => new CustomerResource($this->whenLoaded('customer')),
        ];
    }
}
