"""The classes behind names of middleware, by kernels, applications and providers."""

from __future__ import annotations

from collections.abc import Mapping

from rag_assets.systems.code_memory.laravel.policies import resolve_middleware
from rag_assets.systems.code_memory.laravel.reader import read
from rag_assets.systems.code_memory.symbols.model import FileFacts
from tests.unit.systems.code_memory.laravel.schema_truth import EXAMPLE

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
                })->create();""",
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
        }""",
    )
    assert found == {"a": ("X\\Two", "X\\One"), "b": ("X\\One", "X\\Two")}


def test_late_versions_name_their_own_middleware() -> None:
    text = """<?php $middleware->web(append: [\\App\\A::class]);
        $middleware->alias(['auth' => B\\C::class]);"""
    own = FileFacts("a.php", "php", read(text).facts)
    found = resolve_middleware([own], 12)
    assert found["can"] == ("Illuminate\\Auth\\Middleware\\Authorize",)
    assert found["web"][-2:] == (BINDINGS, "App\\A")
    assert found["auth"] == ("B\\C",)
    assert resolve_middleware([own], 10) == {"web": ("App\\A",), "auth": ("B\\C",)}
