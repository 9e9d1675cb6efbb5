<?php

return [
    'formats' => ['camt.053', 'mt940'],
    'match_tolerance' => env('BANKING_MATCH_TOLERANCE', 0.01),
];
