<?php

return [
    'stripe' => [
        'key' => env('STRIPE_KEY'),
    ],
    'webhooks' => [
        'timeout' => 5,
        'attempts' => 8,
    ],
];
