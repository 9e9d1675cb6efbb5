"""The complete route table of the example, compared with Laravel's."""

from __future__ import annotations

import json
import re

import pytest

from rag_assets.systems.code_memory.laravel.reader import read
from rag_assets.systems.code_memory.laravel.routes.machine import collect_routes, run_providers
from rag_assets.systems.code_memory.laravel.routes.model import LaravelRoutes
from rag_assets.systems.code_memory.symbols.model import FileFacts
from tests.unit.systems.code_memory.laravel.routes_truth import application_by_laravel, ours
from tests.unit.systems.code_memory.laravel.schema_truth import EXAMPLE

CALLS = """
get post put patch delete options match any view redirect resource resources apiResource
apiResources singleton fallback controller prefix name middleware domain namespace
"""
FORMS = {
    **{name: rf"Route::{name}\(" for name in CALLS.split()},
    "only": r"->only\(",
    "except": r"->except\(",
    "closure": r"Route::get\('[^']*', function ",
    "arrow function": r"Route::get\('[^']*', fn ",
    "invokable": r"Route::get\('[^']*', \w+::class\)",
    "text": r"Route::get\('[^']*', '[\w\\]+@\w+'\)",
    "array": r"Route::get\('[^']*', \[\w+::class, '\w+'\]\)",
    "keyed array": r"\['uses' => '\w+@\w+', 'as' => ",
    "attributes": r"Route::group\(\[",
    "router": r"\$router->group\(",
    "provider": r"\$this->routes\(",
    "loadRoutesFrom": r"\$this->loadRoutesFrom\(",
    "require": r"require __DIR__\.'/auth\.php'",
}
AT_LEAST = 120


@pytest.fixture(scope="module")
def found() -> LaravelRoutes:
    paths = sorted(EXAMPLE.rglob("*.php"))
    texts = {path.relative_to(EXAMPLE).as_posix(): path.read_text("utf-8") for path in paths}
    files = [FileFacts(path, "php", read(text).facts) for path, text in texts.items()]
    return collect_routes(run_providers(files))


@pytest.mark.slow
def test_the_table_is_the_one_of_laravel(found: LaravelRoutes) -> None:
    composer = json.loads((EXAMPLE / "composer.json").read_text("utf-8"))
    truth = application_by_laravel(EXAMPLE, composer["autoload"]["psr-4"])
    assert [ours(route) for route in found.routes] == truth
    assert len(truth) >= AT_LEAST
    assert found.unresolved == ()
    assert not any(route.missing or route.conditional for route in found.routes)


@pytest.mark.slow
def test_every_route_leads_to_a_method_that_is_there(found: LaravelRoutes) -> None:
    declared = {
        fact.symbol
        for path in EXAMPLE.rglob("*.php")
        for fact in read(path.read_text("utf-8")).facts
        if fact.kind == "declares"
    }
    actions = {route.action for route in found.routes if route.kind == "controller"}
    assert {action.replace("@", "::") for action in actions} <= declared


@pytest.mark.slow
def test_evidence_goes_from_the_file_that_loads_to_the_statement(found: LaravelRoutes) -> None:
    route = next(one for one in found.routes if one.name == "invoices.send")
    shown = []
    for one in route.evidence:
        text = (EXAMPLE / one.path).read_text("utf-8")[one.fact.start : one.fact.end]
        shown.append((one.path, " ".join(text.split())[:40]))
    assert shown == [
        ("app/Providers/RouteServiceProvider.php", "Route::middleware('web') ->group(base_pa"),
        ("routes/web.php", "Route::middleware(['auth', 'company'])->"),
        ("routes/web.php", "Route::prefix('invoices/{invoice}')->nam"),
        ("routes/web.php", "Route::post('send', [InvoiceController::"),
    ]


@pytest.mark.parametrize("form", FORMS)
def test_the_example_has_every_form(form: str) -> None:
    places = ("routes/*.php", "app/Providers/*.php", "modules/*/*/*.php")
    texts = [path.read_text("utf-8") for place in places for path in EXAMPLE.glob(place)]
    assert any(re.search(FORMS[form], text) for text in texts), form


@pytest.mark.slow
def test_the_example_has_every_kind_of_action(found: LaravelRoutes) -> None:
    kinds = {route.kind for route in found.routes}
    assert kinds == {"controller", "closure", "view", "redirect"}
    assert any(route.fallback for route in found.routes)
    assert any(route.domain for route in found.routes)
    assert any(parameter.field for route in found.routes for parameter in route.parameters)
    assert any(parameter.pattern for route in found.routes for parameter in route.parameters)
