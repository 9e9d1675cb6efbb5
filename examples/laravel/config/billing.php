<?php

return [
    'dashboard' => [
        'latest' => 10,
    ],
    'api' => ['page_size' => env('BILLING_PAGE_SIZE', 50)],
    // Days after the due date on which a reminder is sent, by level.
    'reminders' => [
        'days' => [7, 21, 35],
        'fee' => '5.00',
    ],
    'limits' => ['lines' => 200],
    'pdf' => ['paper' => 'a4'],
    'export' => ['format' => 'csv'],
    'rates_url' => env('BILLING_RATES_URL', 'https://rates.example.test/daily.json'),
];
