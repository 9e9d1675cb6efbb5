<?php

// Makes an application of Laravel as its bootstrap/app.php does, with its configuration and its own providers.
//
// Arguments: a JSON file {"root": path, "laravel": path or "", "prefixes": {namespace: folder}, "files": [path]}.
// `laravel` is the folder Illuminate of a release; without one it is Debian's. $failed has the errors, by name of the failed step.

error_reporting(E_ALL & ~E_DEPRECATED & ~E_WARNING & ~E_NOTICE);
ini_set('memory_limit', '2G');

require __DIR__.'/later_php.php';
require __DIR__.'/stand_ins.php';

use CodeTruth\Loader;
use Illuminate\Config\Repository;
use Illuminate\Foundation\AliasLoader;
use Illuminate\Foundation\Application;
use Illuminate\Support\Facades\Facade;

$plan = json_decode(file_get_contents($argv[1]), true);
$failed = [];

$packages = [
    'Carbon', 'Cron', 'Doctrine/Inflector', 'Dotenv', 'Egulias/EmailValidator', 'Laravel/SerializableClosure', 'League/CommonMark', 'League/Flysystem', 'Monolog',
    'Psr/Container', 'Psr/EventDispatcher', 'Psr/Log', 'Psr/SimpleCache', 'Ramsey/Uuid', 'Symfony/Component/Console', 'Symfony/Component/ErrorHandler',
    'Symfony/Component/Finder', 'Symfony/Component/HttpFoundation', 'Symfony/Component/HttpKernel', 'Symfony/Component/Mime',
    'Symfony/Component/Process', 'Symfony/Component/Routing', 'Symfony/Component/VarDumper', 'TijsVerkoyen/CssToInlineStyles', 'voku/helper',
];
foreach ($packages as $package) {
    require_once "{$package}/autoload.php";
}
$laravel = $plan['laravel'] ?: '/usr/share/php/Illuminate';
$loader = new Loader($plan['root'], $plan['prefixes'], $laravel);
spl_autoload_register([$loader, 'load']);
foreach (['Collections/functions', 'Collections/helpers', 'Reflection/helpers', 'Events/functions', 'Filesystem/functions', 'Foundation/helpers', 'Log/functions', 'Support/functions', 'Support/helpers'] as $helpers) {
    if (is_file("{$laravel}/{$helpers}.php")) {
        require_once "{$laravel}/{$helpers}.php";
    }
}

function attempt(string $name, callable $what): mixed
{
    global $failed;
    try {
        return $what();
    } catch (Throwable $error) {
        $failed[$name] = get_class($error).': '.$error->getMessage().' ('.basename($error->getFile()).':'.$error->getLine().')';

        return null;
    }
}

foreach ($plan['files'] as $file) {
    attempt($file, fn () => require_once $file);
}

$app = attempt('bootstrap/app.php', fn () => require "{$plan['root']}/bootstrap/app.php");
$app = $app instanceof Application ? $app : new Application($plan['root']);
$app->instance('config', $config = new Repository);
$app->instance('env', 'production');
$app->instance('request', Illuminate\Http\Request::create('http://localhost'));
Facade::setFacadeApplication($app);
$folder = method_exists($app, 'configPath') ? $app->configPath() : "{$plan['root']}/config";
foreach (glob("{$folder}/*.php") as $file) {
    $told = attempt('config/'.basename($file), fn () => require $file);
    $config->set(basename($file, '.php'), is_array($told) ? $told : []);
}
$config->set('app.key', 'base64:'.base64_encode(str_repeat('k', 32)));
$config->set('app.cipher', 'AES-256-CBC');
$config->set('cache.default', 'array');
$config->set('database.default', 'sqlite');
foreach ([...array_keys($config->get('database.connections', [])), 'sqlite'] as $name) {
    $config->set("database.connections.{$name}", ['driver' => 'sqlite', 'database' => ':memory:', 'prefix' => '', 'foreign_key_constraints' => false]);
}
date_default_timezone_set('UTC');
AliasLoader::getInstance(array_filter(array_merge(
    method_exists(Facade::class, 'defaultAliases') ? Facade::defaultAliases()->all() : [],
    $config->get('app.aliases', []),
), 'is_string'))->register();

// What packages add to a route takes every argument and changes nothing.
foreach (glob("{$plan['root']}/routes/{,*/}*.php", GLOB_BRACE) as $file) {
    preg_match_all('/->(\w+)\(/', file_get_contents($file), $called);
    foreach (array_unique($called[1]) as $name) {
        if (! method_exists(Illuminate\Routing\Route::class, $name) && ! method_exists(Illuminate\Routing\RouteRegistrar::class, $name)) {
            Illuminate\Routing\Route::macro($name, fn () => $this);
        }
    }
}

$listed = $config->get('app.providers') ?: [];
if (is_file("{$plan['root']}/bootstrap/providers.php")) {
    $own = attempt('bootstrap/providers.php', fn () => require "{$plan['root']}/bootstrap/providers.php");
    $listed = array_merge($listed, is_array($own) ? $own : []);
}
$services = [
    Illuminate\Auth\AuthServiceProvider::class, Illuminate\Cache\CacheServiceProvider::class, Illuminate\Database\DatabaseServiceProvider::class,
    Illuminate\Filesystem\FilesystemServiceProvider::class, Illuminate\Database\MigrationServiceProvider::class,
    Illuminate\Hashing\HashServiceProvider::class, Illuminate\View\ViewServiceProvider::class, Illuminate\Broadcasting\BroadcastServiceProvider::class,
    Illuminate\Session\SessionServiceProvider::class, Illuminate\Queue\QueueServiceProvider::class, Illuminate\Bus\BusServiceProvider::class,
    Illuminate\Encryption\EncryptionServiceProvider::class, Illuminate\Cookie\CookieServiceProvider::class,
    Illuminate\Translation\TranslationServiceProvider::class, Illuminate\Validation\ValidationServiceProvider::class,
    Illuminate\Pipeline\PipelineServiceProvider::class,
];
foreach (array_unique([...$services, ...array_filter($listed, [$loader, 'isOwn'])]) as $provider) {
    attempt($provider, fn () => $app->register($provider));
}
if (method_exists($app, 'loadDeferredProviders')) {
    attempt('deferred providers', fn () => $app->loadDeferredProviders());
}
$booted = [Illuminate\Foundation\Support\Providers\RouteServiceProvider::class, Illuminate\Database\DatabaseServiceProvider::class];
$boot = function () use ($loader, $booted) {
    $this->fireAppCallbacks($this->bootingCallbacks);
    foreach ($this->serviceProviders as $provider) {
        $class = get_class($provider);
        if ($loader->isOwn($class) || in_array($class, $booted, true)) {
            attempt("{$class} boots", fn () => $this->bootProvider($provider));
        }
    }
    $this->booted = true;
    $this->fireAppCallbacks($this->bootedCallbacks);
};
attempt('boot', Closure::bind($boot, $app, Application::class));
