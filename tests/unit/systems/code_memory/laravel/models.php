<?php

// Prints what Eloquent itself makes of an application's models: table, key, and each relation's query.
//
// Arguments: a JSON file {"root": path, "prefixes": {"App\\": "app/"}, "models": {class: [method]}}.

error_reporting(E_ALL & ~E_DEPRECATED);

require_once 'Illuminate/autoload.php';
require_once 'Illuminate/Database/autoload.php';

use Illuminate\Container\Container;
use Illuminate\Database\Capsule\Manager as Capsule;
use Illuminate\Database\Eloquent\Relations as R;

$plan = json_decode(file_get_contents($argv[1]), true);
spl_autoload_register(function (string $class) use ($plan) {
    foreach ($plan['prefixes'] as $prefix => $folder) {
        $path = $plan['root'].'/'.$folder.str_replace('\\', '/', substr($class, strlen($prefix))).'.php';
        if (str_starts_with($class, $prefix) && is_file($path)) {
            require $path;
        }
    }
});
eval('namespace Illuminate\Foundation\Auth; class User extends \Illuminate\Database\Eloquent\Model {}');
if (! trait_exists(Illuminate\Notifications\Notifiable::class)) {
    eval('namespace Illuminate\Notifications; trait Notifiable {}');
}
$container = new Container;
$container->instance('config', new Illuminate\Config\Repository);
Container::setInstance($container);
$capsule = new Capsule;
foreach (['default', 'audit'] as $name) {
    $capsule->addConnection(['driver' => 'sqlite', 'database' => ':memory:'], $name);
}
$capsule->setAsGlobal();
$capsule->bootEloquent();

function relation(R\Relation $relation): array
{
    $made = ['related' => get_class($relation->getRelated())];
    if (method_exists($relation, 'getTable')) {
        $made['table'] = $relation->getTable();
    }

    return $made;
}

$found = [];
foreach ($plan['models'] as $class => $methods) {
    $model = new $class;
    $found[$class] = ['table' => $model->getTable(), 'relations' => []];
    foreach ($methods as $method) {
        $relation = $model->$method();
        $found[$class]['relations'][$method] = ['kind' => lcfirst(class_basename($relation))] + relation($relation);
    }
}
echo json_encode($found);
