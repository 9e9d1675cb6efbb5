<?php

namespace App\Support\Routing;

use Illuminate\Routing\Router;

/** Gives the router of Laravel 8 the `singleton` of later versions: one thing without an identifier. */
class SingletonRoutes
{
    public static function register(): void
    {
        if (method_exists(Router::class, 'singleton') || Router::hasMacro('singleton')) {
            return;
        }
        Router::macro('singleton', function (string $name, string $controller): void {
            /** @var Router $this */
            $this->get($name, [$controller, 'show'])->name($name.'.show');
            $this->get($name.'/edit', [$controller, 'edit'])->name($name.'.edit');
            $this->match(['PUT', 'PATCH'], $name, [$controller, 'update'])->name($name.'.update');
        });
    }
}
