<?php

// What the tests compare of a router's routes.

use Illuminate\Routing\Route as RouteOfRouter;
use Illuminate\Routing\Router;

// What later versions than Laravel 8 have, as they have it.
RouteOfRouter::macro('whereIn', function ($parameters, array $values) {
    foreach ((array) $parameters as $parameter) {
        $this->where($parameter, implode('|', $values));
    }

    return $this;
});

function routes(Router $router): array
{
    $found = [];
    foreach ($router->getRoutes() as $route) {
        $action = $route->getAction();
        $uses = $action['uses'] ?? null;
        $kind = is_string($uses) ? 'controller' : 'closure';
        $name = is_string($uses) ? ltrim($uses, '\\') : 'Closure';
        if ($name === 'Illuminate\Routing\ViewController@__invoke') {
            [$kind, $name] = ['view', $route->defaults['view']];
        } elseif ($name === 'Illuminate\Routing\RedirectController@__invoke') {
            [$kind, $name] = ['redirect', $route->defaults['destination']];
        }
        $found[] = [
            'methods' => $route->methods(),
            'uri' => $route->uri(),
            'name' => $route->getName() ?? '',
            'action' => $name,
            'kind' => $kind,
            'middleware' => array_values((array) ($action['middleware'] ?? [])),
            'without' => array_values((array) ($action['excluded_middleware'] ?? [])),
            'domain' => $route->getDomain() ?? '',
            'parameters' => $route->parameterNames(),
            'wheres' => (object) $route->wheres,
            'fields' => (object) array_filter($route->bindingFields()),
            'fallback' => $route->isFallback,
        ];
    }

    return $found;
}
