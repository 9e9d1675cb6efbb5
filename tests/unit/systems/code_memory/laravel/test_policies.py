"""Policies of Laravel, and the names of middleware."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from rag_assets.systems.code_memory.derived.laravel import derive
from rag_assets.systems.code_memory.derived.model import DerivedStatement
from rag_assets.systems.code_memory.laravel.policies import resolve_middleware
from rag_assets.systems.code_memory.laravel.reader import read
from rag_assets.systems.code_memory.relations.relations import (
    EDGE_NAMES,
    UNNAMED_KINDS,
    build_relations,
)
from rag_assets.systems.code_memory.symbols.model import FileFacts
from rag_assets.systems.code_memory.symbols.names import (
    ASKS,
    iter_tried_policies,
    iter_usual_policies,
)
from rag_assets.systems.code_memory.symbols.source_types import get_source_type
from tests.unit.systems.code_memory.laravel.routes_truth import PROVIDER
from tests.unit.systems.code_memory.laravel.schema_truth import EXAMPLE

BOOKING = "App\\Models\\Travel\\Booking"
CONTROLLER = """<?php
namespace App\\Http\\Controllers;
use App\\Models\\Travel\\Booking;
use Illuminate\\Support\\Facades\\Gate;
class BookingController {
    public function __construct() { $this->authorizeResource(Booking::class, 'booking'); }
    public function show(Booking $booking) { $this->authorize($booking); }
    public function cancel(Booking $booking) { Gate::authorize('cancel-late', $booking); }
    public function move($to, Booking $one) { abort_if(auth()->user()->cant('move', [$one, $to])); }
    public function any($booking) { $this->authorize('view', $booking); }
}
"""


def asks(text: str) -> set[tuple[str, str]]:
    """Return source and target of each policy call, without namespaces."""
    edges = build_relations(read(text).facts).edges
    short = [(edge.source, edge.target) for edge in edges if edge.kind == ASKS]
    assert all(edge.how == "convention" for edge in edges if edge.kind == ASKS)
    return {(source.rpartition("\\")[2], target) for source, target in short}


def test_a_policy_has_the_names_that_laravel_tries() -> None:
    # What Gate::guessPolicyName gives, in the order that it looks for them.
    assert list(iter_tried_policies(BOOKING)) == [
        "App\\Models\\Policies\\Travel\\BookingPolicy",
        "App\\Policies\\Travel\\BookingPolicy",
        "App\\Models\\Travel\\Policies\\BookingPolicy",
        "App\\Models\\Policies\\BookingPolicy",
        "App\\Policies\\BookingPolicy",
    ]
    assert list(iter_tried_policies("App\\Invoice")) == ["App\\Policies\\InvoicePolicy"]
    assert list(iter_tried_policies("App\\Models\\Invoice")) == [
        "App\\Models\\Policies\\InvoicePolicy",
        "App\\Policies\\InvoicePolicy",
    ]


@pytest.mark.parametrize(
    ("model", "usual"),
    [
        (BOOKING, ["App\\Policies\\Travel\\BookingPolicy", "App\\Policies\\BookingPolicy"]),
        ("App\\Models\\Invoice", ["App\\Policies\\InvoicePolicy"]),
        ("Modules\\Shop\\Models\\Order", ["Modules\\Shop\\Policies\\OrderPolicy"]),
        ("App\\Invoice", ["App\\Policies\\InvoicePolicy"]),
        ("Invoice", []),
    ],
)
def test_the_usual_policies_are_among_those_of_laravel(model: str, usual: list[str]) -> None:
    assert list(iter_usual_policies(model)) == usual
    assert set(usual) <= set(iter_tried_policies(model))


@pytest.mark.parametrize(
    ("asker", "method"),
    [
        ("show", "view"),
        ("cancel", "cancelLate"),
        ("move", "move"),
        ("store", "create"),
        ("destroy", "delete"),
    ],
)
def test_who_authorizes_asks_a_method_of_the_policy(asker: str, method: str) -> None:
    source = f"BookingController::{asker}"
    assert (source, f"App\\Policies\\BookingPolicy::{method}") in asks(CONTROLLER)


def test_an_unknown_object_asks_nobody() -> None:
    assert not {ask for ask in asks(CONTROLLER) if ask[0].endswith("::any")}
    assert asks("<?php class A { function f($x) { $this->authorize('view', $x); } }") == set()


def test_a_check_of_an_existing_policy_authorizes() -> None:
    assert ASKS in UNNAMED_KINDS
    assert EDGE_NAMES[ASKS, "policy"] == "authorizes"


ROUTED = {
    "routes/web.php": """<?php
use App\\Http\\Controllers\\TripController;
use App\\Models\\Travel\\Booking;
use Illuminate\\Support\\Facades\\Route;
Route::middleware('can:audit')->group(function () {
    Route::get('audit', [TripController::class, 'audit']);
});
Route::middleware('can:view-any,App\\Models\\Travel\\Booking')->group(function () {
    Route::get('bookings', [TripController::class, 'index']);
});
Route::post('bookings/{booking}', [TripController::class, 'move'])->can('move', 'booking');
Route::put('lines/{booking_line}', [TripController::class, 'line'])
    ->middleware('can:update,booking_line');
Route::get('lost/{other}', [TripController::class, 'move'])->can('move', 'booking');
Route::get('bare/{booking}', [TripController::class, 'bare'])->can('move', 'booking');
Route::get('closed/{booking}', fn ($booking) => 1)->can('move', 'booking');
Route::get('below/{booking}', [App\\Http\\Controllers\\NightController::class, 'move'])
    ->can('move', 'booking');
""",
    "app/Http/Controllers/TripController.php": """<?php
namespace App\\Http\\Controllers;
use App\\Models\\{Line, Travel\\Booking};
class TripController extends \\Illuminate\\Routing\\Controller {
    public function audit() {}
    public function index() {}
    public function move(Booking $booking) {}
    public function line(?Line $bookingLine) {}
    public function bare($booking) {}
}
""",
    "app/Http/Controllers/NightController.php": (
        "<?php namespace App\\Http\\Controllers; class NightController extends TripController {}"
    ),
    "app/Policies/Travel/BookingPolicy.php": (
        "<?php namespace App\\Policies\\Travel; class BookingPolicy {"
        " public function move() {} public function viewAny() {} }"
    ),
    "app/Providers/AuthServiceProvider.php": """<?php
namespace App\\Providers;
use Illuminate\\Foundation\\Support\\Providers\\AuthServiceProvider as Base;
class AuthServiceProvider extends Base {
    protected $policies = [\\App\\Models\\Line::class => \\App\\Rules\\Lines::class];
}
""",
    "app/Providers/RouteServiceProvider.php": PROVIDER,
}


def statements_of_routes(texts: Mapping[str, str]) -> dict[str, Sequence[DerivedStatement]]:
    files = [FileFacts(path, "php", read(text).facts) for path, text in texts.items()]
    documents = derive(files).documents
    return {document.name.removeprefix("route:"): document.statements for document in documents}


def test_a_route_leads_to_the_policy_that_its_middleware_asks() -> None:
    found = {}
    for name, statements in statements_of_routes(ROUTED).items():
        asked = [(s.kind, s.target, s.how) for s in statements if "authorizes" in s.kind]
        guards = [s.target for s in statements if s.kind == "guarded_by" and "\\" in s.target]
        found[name] = (asked, guards)
    booking = "App\\Policies\\Travel\\BookingPolicy"
    moves = ([("authorizes", f"{booking}::move", "convention")], [booking])
    nothing: tuple[list[object], list[str]] = ([], [])
    assert found == {
        "GET /audit": nothing,
        "GET /bookings": ([("authorizes", f"{booking}::viewAny", "convention")], [booking]),
        "POST /bookings/{booking}": moves,
        "GET /below/{booking}": moves,
        "PUT /lines/{booking_line}": (
            [("authorizes", "App\\Rules\\Lines::update", "stated")],
            ["App\\Rules\\Lines"],
        ),
        "GET /lost/{other}": nothing,
        "GET /bare/{booking}": nothing,
        "GET /closed/{booking}": nothing,
    }


def test_a_can_of_an_applications_own_asks_no_policy() -> None:
    kernel = """<?php
namespace App\\Http;
class Kernel extends \\Illuminate\\Foundation\\Http\\Kernel {
    protected $middlewareAliases = ['can' => \\App\\Http\\Middleware\\Can::class];
}
"""
    routes = statements_of_routes({**ROUTED, "app/Http/Kernel.php": kernel})
    stated = [s for statements in routes.values() for s in statements]
    assert stated
    assert not any(s.kind == "authorizes" for s in stated)


GATES = """<?php
namespace App\\Providers;
use App\\Policies\\NotePolicy;
use App\\Rules\\Audit;
use Illuminate\\Support\\Facades\\Gate;
class AuthServiceProvider {
    public function boot($gate) {
        Gate::define('manage notes', [NotePolicy::class, 'manageNotes']);
        Gate::define('audit', Audit::class);
        Gate::define('send-note', 'App\\Policies\\NotePolicy@send');
        Gate::define('close', fn ($user) => $user->admin);
        Gate::define($computed, fn ($user) => false);
        Gate::resource('notes', NotePolicy::class);
        Gate::resource('files', NotePolicy::class, ['read' => 'view']);
        $gate->define('old', [NotePolicy::class, 'old']);
    }
}
"""


def test_a_gate_tells_who_answers_for_an_ability() -> None:
    policy = "App\\Policies\\NotePolicy"
    usual = {"viewAny", "view", "create", "update", "delete"}
    relations = build_relations(read(GATES).facts)
    found = {(one.source, one.target) for one in relations.edges if one.kind == "authorizes"}
    assert found == {
        ("ability:manage notes", f"{policy}::manageNotes"),
        ("ability:audit", "App\\Rules\\Audit::__invoke"),
        ("ability:send-note", f"{policy}::send"),
        *((f"ability:notes.{one}", f"{policy}::{one}") for one in usual),
        ("ability:files.read", f"{policy}::view"),
        ("ability:old", f"{policy}::old"),
    }
    defined = {symbol.name: symbol.short for symbol in relations.symbols}
    assert defined["ability:close"] == "close"
    assert defined["ability:notes.view"] == "notes.view"
    assert get_source_type("ability", "ability:close", {}, "code") == "policy"


ASKING = """<?php
namespace App\\Http\\Controllers;
use App\\Models\\Note;
class NoteController {
    public function index() { $this->authorize('manage notes'); }
    public function show(Note $note) { $this->authorize('manage notes', $note); }
    public function send(Note $note) { $this->authorize('send-note', $note); }
}
"""


def test_who_asks_for_an_ability_leads_to_it() -> None:
    edges = build_relations(read(ASKING).facts).edges
    told = [one for one in edges if one.kind in {"authorizes", "touches", ASKS}]
    found = {(edge.source.rpartition("::")[2], edge.kind, edge.target) for edge in told}
    note = "App\\Models\\Note"
    assert found == {
        ("index", "authorizes", "ability:manage notes"),
        ("show", "authorizes", "ability:manage notes"),
        # No method is called so: no policy of the model can be asked.
        ("show", "touches", note),
        ("send", "authorizes", "ability:send-note"),
        ("send", "authorizes", note),
        ("send", ASKS, "App\\Policies\\NotePolicy::sendNote"),
    }


def test_an_object_of_several_types_asks_the_policy_of_each() -> None:
    text = """<?php
namespace App\\Http\\Controllers;
use App\\Models\\{Bill, Note};
class OfBoth {
    public function show($id) { $this->authorize('view', $this->found($id)); }
    public function edit($id) { $one = $this->found($id); $this->authorize('view', $one); }
    private function found($id): Bill|Note {}
}
"""
    policies = {"App\\Policies\\BillPolicy::view", "App\\Policies\\NotePolicy::view"}
    assert asks(text) == {("OfBoth::edit", policy) for policy in policies}


def test_a_route_asks_a_gate_where_no_policy_has_such_a_method() -> None:
    gates = """<?php
namespace App\\Providers;
use Illuminate\\Support\\Facades\\Gate;
class GateProvider {
    public function boot() {
        Gate::define('audit', fn ($user) => true);
        Gate::define('move', fn ($user) => true);
        Gate::define('update', fn ($user) => true);
    }
}
"""
    routes = statements_of_routes(ROUTED | {"app/Providers/GateProvider.php": gates})
    found = {
        name: [s.target for s in statements if s.kind == "authorizes"]
        for name, statements in routes.items()
    }
    assert found["GET /audit"] == ["ability:audit"]
    # The policy has a method of this name, and is asked first.
    assert found["POST /bookings/{booking}"] == ["App\\Policies\\Travel\\BookingPolicy::move"]
    assert found["PUT /lines/{booking_line}"] == ["ability:update"]


ROUTING = "Illuminate\\Routing\\Middleware\\"
BINDINGS = f"{ROUTING}SubstituteBindings"
THROTTLE = f"{ROUTING}ThrottleRequests"


def names_of(**texts: str) -> Mapping[str, tuple[str, ...]]:
    """Return the names in files by path, with `__` for slashes."""
    return resolve_middleware(
        FileFacts(path.replace("__", "/") + ".php", "php", read("<?php " + text).facts)
        for path, text in texts.items()
    )


def test_the_kernel_of_the_example_names_classes() -> None:
    files = [
        FileFacts(path.relative_to(EXAMPLE).as_posix(), "php", read(path.read_text("utf-8")).facts)
        for path in sorted(EXAMPLE.rglob("*.php"))
    ]
    found = resolve_middleware(files)
    assert found["company"] == ("App\\Http\\Middleware\\EnsureCompanySelected",)
    assert found["auth"] == ("Illuminate\\Auth\\Middleware\\Authenticate",)
    assert found["api"] == (THROTTLE, BINDINGS)
    assert found["web"] == (
        "Illuminate\\Cookie\\Middleware\\AddQueuedCookiesToResponse",
        "Illuminate\\Session\\Middleware\\StartSession",
        BINDINGS,
    )


def test_kernels_inherit_and_providers_add() -> None:
    found = names_of(
        app__Http__Kernel="""namespace App\\Http;
            use Illuminate\\Foundation\\Http\\Kernel as HttpKernel;
            class Kernel extends HttpKernel {
                protected $middlewareGroups = [
                    'web' => ['auth:web', First::class, 'unknown'], 'none' => [],
                ];
                protected $middlewareAliases = ['auth' => Middleware\\Authenticate::class];
            }""",
        app__Providers__AppServiceProvider="""namespace App\\Providers;
            use Illuminate\\Support\\ServiceProvider; use Illuminate\\Routing\\Router;
            use Illuminate\\Support\\Facades\\Route;
            class AppServiceProvider extends ServiceProvider {
                public function boot(Router $router) {
                    $router->aliasMiddleware('tenant', \\App\\Tenant::class);
                    $router->pushMiddlewareToGroup('web', \\App\\Last::class);
                    Route::prependMiddlewareToGroup('web', 'tenant:strict');
                    $this->app['router']->middlewareGroup('admin', ['web', \\App\\Admin::class]);
                }
            }""",
    )
    web = ("App\\Http\\Middleware\\Authenticate", "App\\Http\\First", "App\\Last", "App\\Tenant")
    assert found == {
        "auth": ("App\\Http\\Middleware\\Authenticate",),
        "tenant": ("App\\Tenant",),
        "web": web,
        "admin": (*web, "App\\Admin"),
    }


def test_an_application_names_middleware_of_its_own() -> None:
    found = names_of(
        bootstrap__app="""
            use Illuminate\\Foundation\\Application;
            use Illuminate\\Foundation\\Configuration\\Middleware;
            use Illuminate\\Routing\\Middleware\\SubstituteBindings;
            use Illuminate\\View\\Middleware\\ShareErrorsFromSession;
            return Application::configure(basePath: dirname(__DIR__))
                ->withRouting(web: __DIR__.'/../routes/web.php')
                ->withMiddleware(function (Middleware $middleware) {
                    $middleware->alias(['role' => \\App\\Role::class]);
                    $middleware->web(append: [\\App\\A::class], prepend: \\App\\P::class);
                    $middleware->appendToGroup('own', ['role:admin', \\App\\B::class]);
                    $middleware->group('plain', ['web']);
                })->create();"""
    )
    assert found == {
        "role": ("App\\Role",),
        "web": ("App\\A", "App\\P"),
        "own": ("App\\Role", "App\\B"),
        "plain": ("App\\A", "App\\P"),
    }


def test_names_in_a_circle_stand_for_what_else_they_name() -> None:
    found = names_of(
        app__Kernel="""class Kernel extends \\Illuminate\\Foundation\\Http\\Kernel {
            protected $middlewareGroups = ['a' => ['b', 'X\\\\One'], 'b' => ['a', 'X\\\\Two']];
        }"""
    )
    assert found == {"a": ("X\\Two", "X\\One"), "b": ("X\\One", "X\\Two")}


def test_later_versions_name_middleware_by_default() -> None:
    text = """<?php $middleware->web(append: [\\App\\A::class]);
        $middleware->alias(['auth' => B\\C::class]);"""
    own = FileFacts("a.php", "php", read(text).facts)
    found = resolve_middleware([own], 12)
    assert found["can"] == ("Illuminate\\Auth\\Middleware\\Authorize",)
    assert found["web"][-2:] == (BINDINGS, "App\\A")
    assert found["auth"] == ("B\\C",)
    assert resolve_middleware([own], 10) == {"web": ("App\\A",), "auth": ("B\\C",)}
