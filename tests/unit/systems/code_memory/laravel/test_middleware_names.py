"""The classes that names of middleware stand for: by kernels, by applications, by providers."""

from __future__ import annotations

from collections.abc import Mapping

from rag_assets.systems.code_memory.laravel.reader import read
from rag_assets.systems.code_memory.laravel.routes.resolver import resolve_middleware, run_providers
from rag_assets.systems.code_memory.settings.reader import read_json
from rag_assets.systems.code_memory.symbols.model import FileFacts
from tests.unit.systems.code_memory.laravel.schema_truth import EXAMPLE

ROUTING = "Illuminate\\Routing\\Middleware\\"
BINDINGS = f"{ROUTING}SubstituteBindings"
THROTTLE = f"{ROUTING}ThrottleRequests"


def names_of(version: str = "^12.0", **texts: str) -> Mapping[str, tuple[str, ...]]:
    """The names in files by path, `__` for a slash."""
    files = [
        FileFacts(path.replace("__", "/") + ".php", "php", read("<?php " + text).facts)
        for path, text in texts.items()
    ]
    manifest = read_json(f'{{"require": {{"laravel/framework": "{version}"}}}}')
    return resolve_middleware(
        run_providers([*files, FileFacts("composer.json", "json", manifest.facts)])
    )


def test_the_kernel_of_the_example_names_classes() -> None:
    files = [
        FileFacts(path.relative_to(EXAMPLE).as_posix(), "php", read(path.read_text("utf-8")).facts)
        for path in sorted(EXAMPLE.rglob("*.php"))
    ]
    found = resolve_middleware(run_providers(files))
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
        "^9.0",
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
    web = ("App\\Tenant", "App\\Http\\Middleware\\Authenticate", "App\\Http\\First", "App\\Last")
    assert found == {
        "auth": ("App\\Http\\Middleware\\Authenticate",),
        "tenant": ("App\\Tenant",),
        "web": web,
        "admin": (*web, "App\\Admin"),
    }


def test_an_application_changes_the_groups_of_the_framework() -> None:
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
                    $middleware->web(remove: ShareErrorsFromSession::class);
                    $middleware->statefulApi()->throttleApi();
                    $middleware->api(replace: [
                        SubstituteBindings::class => \\App\\Bind::class,
                    ]);
                    $middleware->appendToGroup('own', ['role:admin', \\App\\B::class]);
                    $middleware->group('plain', ['web']);
                })->create();""",
    )
    assert found["role"] == ("App\\Role",)
    assert found["web"] == (
        "App\\P",
        "Illuminate\\Cookie\\Middleware\\EncryptCookies",
        "Illuminate\\Cookie\\Middleware\\AddQueuedCookiesToResponse",
        "Illuminate\\Session\\Middleware\\StartSession",
        "Illuminate\\Foundation\\Http\\Middleware\\ValidateCsrfToken",
        BINDINGS,
        "App\\A",
    )
    assert found["api"] == (
        "Laravel\\Sanctum\\Http\\Middleware\\EnsureFrontendRequestsAreStateful",
        THROTTLE,
        "App\\Bind",
    )
    assert found["own"] == ("App\\Role", "App\\B")
    assert found["plain"] == found["web"]
    assert found["verified"] == ("Illuminate\\Auth\\Middleware\\EnsureEmailIsVerified",)


def test_names_in_a_circle_stand_for_what_else_they_name() -> None:
    found = names_of(
        "^9.0",
        app__Kernel="""class Kernel extends \\Illuminate\\Foundation\\Http\\Kernel {
            protected $middlewareGroups = ['a' => ['b', 'X\\\\One'], 'b' => ['a', 'X\\\\Two']];
        }""",
    )
    assert found == {"a": ("X\\Two", "X\\One"), "b": ("X\\One", "X\\Two")}


def test_late_versions_name_their_own_middleware() -> None:
    assert names_of()["can"] == ("Illuminate\\Auth\\Middleware\\Authorize",)
    assert names_of("^10.0") == {}
