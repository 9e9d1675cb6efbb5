"""Routes of Laravel's own router, and ours in the same form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_assets.systems.code_memory.laravel.reader import read
from rag_assets.systems.code_memory.laravel.routes.machine import collect_routes, run_providers
from rag_assets.systems.code_memory.laravel.routes.model import LaravelRoute, LaravelRoutes
from rag_assets.systems.code_memory.settings.reader import read_json
from rag_assets.systems.code_memory.symbols.model import FileFacts
from tests.unit.systems.code_memory.laravel.schema_truth import _php

PROVIDER = """<?php
namespace App\\Providers;
use Illuminate\\Foundation\\Support\\Providers\\RouteServiceProvider as ServiceProvider;
class RouteServiceProvider extends ServiceProvider
{
    public function boot() { $this->routes(function () { require base_path('routes/web.php'); }); }
}
"""


def routes_by_laravel(entries: Sequence[Path], root: Path) -> list[list[dict[str, Any]]]:
    plan = {"entries": list(map(str, entries)), "root": str(root), "config": {}, "constants": {}}
    found: list[list[dict[str, Any]]] = _php("routes.php", plan)
    assert not [one for one in found if isinstance(one, str)]
    return found


def application_by_laravel(root: Path, prefixes: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return an application's routes after its providers ran; `prefixes`: folders by namespace."""
    plan = {"root": str(root), "prefixes": dict(prefixes)}
    found: list[dict[str, Any]] = _php("application.php", plan)
    return found


def repository(version: str = "^8.83", **texts: str) -> LaravelRoutes:
    """Return the routes of files by path, `__` for slashes; a provider loads routes/web.php."""
    given = {"app/Providers/RouteServiceProvider.php": PROVIDER}
    given |= {path.replace("__", "/") + ".php": text for path, text in texts.items()}
    files = [FileFacts(path, "php", read(text).facts) for path, text in given.items()]
    manifest = read_json(f'{{"require": {{"laravel/framework": "{version}"}}}}')
    files.append(FileFacts("composer.json", "json", manifest.facts))
    return collect_routes(run_providers(files))


def ours(route: LaravelRoute) -> dict[str, Any]:
    return {
        "methods": list(route.methods),
        "uri": route.uri,
        "name": route.name,
        "action": "Closure" if route.kind == "none" else route.action,
        "kind": "closure" if route.kind == "none" else route.kind,
        "middleware": list(route.middleware),
        "without": list(route.without_middleware),
        "domain": route.domain,
        "parameters": [parameter.name for parameter in route.parameters],
        "wheres": dict(route.wheres),
        "fields": {one.name: one.field for one in route.parameters if one.field},
        "fallback": route.fallback,
    }
