<?php

// Prints what Laravel's Str makes of each word of a JSON list, as [plural, singular, snake, table].

error_reporting(E_ALL & ~E_DEPRECATED);

require_once 'Illuminate/autoload.php';

use Illuminate\Support\Str;

$made = [];
foreach (json_decode(file_get_contents($argv[1]), true) as $word) {
    $made[] = [
        Str::plural($word),
        Str::singular($word),
        Str::snake($word),
        Str::snake(Str::pluralStudly($word)),
    ];
}
echo json_encode($made, JSON_UNESCAPED_UNICODE);
