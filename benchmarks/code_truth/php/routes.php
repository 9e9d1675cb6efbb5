<?php

// Prints the routes of a booted application, and the errors of its boot.
//
// Arguments: as application.php has them. Output: {"routes": [...], "failed": {name: message}, "version": text}.

require __DIR__.'/application.php';
require __DIR__.'/../../../tests/unit/systems/code_memory/laravel/routes_table.php';

echo json_encode([
    'routes' => routes($app->make('router')),
    'failed' => (object) $failed,
    'version' => Illuminate\Foundation\Application::VERSION,
], JSON_UNESCAPED_SLASHES | JSON_INVALID_UTF8_SUBSTITUTE);
