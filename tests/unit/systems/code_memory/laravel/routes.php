<?php

// Loads files of routes by Laravel's own router and prints the routes that it then has.
//
// Arguments: a JSON file {"entries": [path], "root": path, "config": {name: value}, "constants": {class: {name: value}}}.
// An entry is what a provider would do, with a router of its own; every class that is missing is made up, so that nothing of a repository runs.
// Output, for each entry: [{methods, uri, name, action, kind, middleware, without, domain, parameters, wheres, fields, fallback}].

error_reporting(E_ALL & ~E_DEPRECATED & ~E_WARNING);

require_once 'Illuminate/autoload.php';
require_once 'Illuminate/Routing/autoload.php';
require_once 'Illuminate/Events/autoload.php';
require_once __DIR__.'/routes_table.php';

use Illuminate\Container\Container;
use Illuminate\Events\Dispatcher;
use Illuminate\Routing\ResourceRegistrar;
use Illuminate\Routing\Router;
use Illuminate\Support\Facades\Facade;

$plan = json_decode(file_get_contents($argv[1]), true);

function base_path($path = '')
{
    global $plan;

    return rtrim($plan['root'].'/'.ltrim($path, '/'), '/');
}

function app_path($path = '')
{
    return base_path('app/'.ltrim($path, '/'));
}

function config($name = null, $default = null)
{
    global $plan;

    return $plan['config'][$name] ?? $default;
}

spl_autoload_register(function (string $class) {
    global $plan;
    $at = strrpos($class, '\\');
    if ($at === false || strncmp($class, 'Illuminate\\', 11) === 0) {
        return;
    }
    $space = substr($class, 0, $at);
    $short = substr($class, $at + 1);
    $constants = '';
    foreach ($plan['constants'][$class] ?? [] as $name => $value) {
        $constants .= "const {$name} = ".var_export($value, true).'; ';
    }
    $methods = 'public function __invoke() {} public function __call($m, $a) { return $this; } '
        .'public static function __callStatic($m, $a) { return new static; }';
    eval("namespace {$space}; class {$short} { {$constants} {$methods} }");
});

class_alias('Illuminate\Support\Facades\Route', 'Route');

function router(): Router
{
    $container = new Container;
    Container::setInstance($container);
    Facade::clearResolvedInstances();
    Facade::setFacadeApplication($container);
    $router = new Router(new Dispatcher($container), $container);
    $container->instance('router', $router);
    $container->instance(Router::class, $router);
    ResourceRegistrar::verbs(['create' => 'create', 'edit' => 'edit']);
    ResourceRegistrar::setParameters([]);
    ResourceRegistrar::singularParameters();

    return $router;
}

$found = [];
foreach ($plan['entries'] as $entry) {
    $router = router();
    try {
        (function () use ($entry, $router) {
            require $entry;
        })();
        $found[] = routes($router);
    } catch (Throwable $error) {
        $found[] = get_class($error).': '.$error->getMessage();
    }
}
echo json_encode($found, JSON_UNESCAPED_SLASHES);
