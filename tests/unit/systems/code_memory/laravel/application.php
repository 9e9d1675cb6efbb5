<?php

// Boots an application of Laravel with its own providers and prints the routes that its router then has.
//
// Arguments: a JSON file {"root": path, "prefixes": {namespace: folder}}; config/app.php names the providers.
// A class that is missing is made up.
// Output: [{methods, uri, name, action, kind, middleware, without, domain, parameters, wheres, fields, fallback}].

error_reporting(E_ALL & ~E_DEPRECATED & ~E_WARNING);

require_once 'Illuminate/autoload.php';
require_once __DIR__.'/routes_table.php';

$plan = json_decode(file_get_contents($argv[1]), true);

spl_autoload_register(function (string $class) {
    global $plan;
    $file = str_replace('\\', '/', $class).'.php';
    if (strncmp($class, 'Illuminate\\', 11) === 0) {
        if (stream_resolve_include_path($file)) {
            require_once $file;
        }

        return;
    }
    foreach ($plan['prefixes'] as $prefix => $folder) {
        $below = str_replace('\\', '/', substr($class, strlen($prefix))).'.php';
        if (strncmp($class, $prefix, strlen($prefix)) === 0 && is_file("{$plan['root']}/{$folder}{$below}")) {
            require_once "{$plan['root']}/{$folder}{$below}";

            return;
        }
    }
});

require_once 'Illuminate/Foundation/helpers.php';

$app = new Illuminate\Foundation\Application($plan['root']);
$app->instance('config', new Illuminate\Config\Repository);
Illuminate\Support\Facades\Facade::setFacadeApplication($app);
$settings = require "{$plan['root']}/config/app.php";
$app->make('config')->set('app', $settings);
$services = [
    Illuminate\Auth\AuthServiceProvider::class,
    Illuminate\Cache\CacheServiceProvider::class,
    Illuminate\Filesystem\FilesystemServiceProvider::class,
];
foreach ([...$services, ...$settings['providers']] as $provider) {
    $app->register($provider);
}
$app->boot();
echo json_encode(routes($app->make('router')), JSON_UNESCAPED_SLASHES);
