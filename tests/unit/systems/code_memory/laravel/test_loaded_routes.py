"""How route files are loaded, and what is reported about those that cannot be resolved."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from rag_assets.systems.code_memory.laravel.reader import read
from rag_assets.systems.code_memory.laravel.routes.machine import collect_routes, run_providers
from rag_assets.systems.code_memory.laravel.routes.model import LaravelRoute, LaravelRoutes
from rag_assets.systems.code_memory.symbols.model import FileFacts
from tests.cost import assert_linear

WEB = "<?php use Illuminate\\Support\\Facades\\Route;\n"
ONE = WEB + "Route::get('one', 'C@one')->name('one');"


def provider(body: str, *, name: str = "BlogServiceProvider", space: str = "Blog") -> str:
    """Return a service provider with these members."""
    return (
        f"<?php\nnamespace {space};\nuse Illuminate\\Support\\Facades\\Route;\n"
        "use Illuminate\\Support\\ServiceProvider;\n"
        f"class {name} extends ServiceProvider\n{{\n{body}\n}}\n"
    )


def booting(body: str, name: str = "BlogServiceProvider", space: str = "Blog") -> str:
    """Return a service provider whose method `boot` has this body."""
    return provider(f"public function boot() {{\n{body}\n}}", name=name, space=space)


def routes(files: Mapping[str, str]) -> LaravelRoutes:
    read_files = [FileFacts(path, "php", read(text).facts) for path, text in files.items()]
    return collect_routes(run_providers(read_files))


def line(route: LaravelRoute) -> str:
    """Return the fields of a route that most tests check."""
    return f"{route.methods[0]} {route.uri} {route.name} {','.join(route.middleware)}".strip()


LOADED = {
    "withRouting": {
        "bootstrap/app.php": """<?php use Illuminate\\Foundation\\Application;
            use Illuminate\\Support\\Facades\\Route;
            return Application::configure(basePath: dirname(__DIR__))->withRouting(
                web: __DIR__.'/../routes/web.php', api: __DIR__.'/../routes/api.php',
                health: '/up', apiPrefix: 'api/v1',
                then: fn () => Route::middleware('web')->prefix('more')
                    ->group(base_path('routes/more.php')),
            )->create();""",
        "routes/web.php": ONE,
        "routes/api.php": WEB + "Route::get('two', 'C@two');",
        "routes/more.php": WEB + "Route::get('three', 'C@three');",
    },
    "using": {
        "bootstrap/app.php": """<?php use Illuminate\\Foundation\\Application;
            return Application::configure(dirname(__DIR__))->withRouting(using: function () {
                require base_path('routes/web.php');
            })->create();""",
        "routes/web.php": ONE,
    },
    "loadRoutesFrom": {
        "src/Blog.php": booting("$this->loadRoutesFrom(__DIR__ . '/../routes/blog.php');"),
        "routes/blog.php": ONE,
    },
    "a method that boot calls": {
        "src/BlogServiceProvider.php": provider("""
            protected $prefix = 'blog';
            private const NAME = 'blog.';
            public function boot() { $this->register_routes(); }
            private function register_routes() {
                Route::group($this->configuration(), function () {
                    $this->loadRoutesFrom(__DIR__ . '/routes.php');
                });
            }
            private function configuration(): array {
                return ['prefix' => $this->prefix, 'as' => self::NAME, 'middleware' => 'web'];
            }"""),
        "src/routes.php": ONE,
    },
    "a folder that a property names": {
        "src/BlogServiceProvider.php": provider("""
            protected string $root = __DIR__ . '/..';
            public function boot() {
                foreach (['a', 'b'] as $file) {
                    $this->loadRoutesFrom("{$this->root}/routes/{$file}.php");
                }
            }"""),
        "routes/a.php": ONE,
        "routes/b.php": WEB + "Route::get('two', 'C@two');",
    },
    "settings": {
        "src/BlogServiceProvider.php": booting("""Route::group([
                'prefix' => config('blog.prefix'), 'middleware' => config('blog.middleware'),
            ], fn () => $this->loadRoutesFrom(__DIR__ . '/routes.php'));"""),
        "config/blog.php": "<?php return ['prefix' => 'news', 'middleware' => ['web', 'auth']];",
        "src/routes.php": ONE,
    },
    "a parent that boots": {
        "app/Base.php": provider(
            "public function boot() { $this->routes(); } protected function routes() {}",
            name="BaseServiceProvider",
        ),
        "app/Own.php": """<?php namespace Blog;
            class OwnServiceProvider extends BaseServiceProvider {
                protected function routes() { require base_path('routes/web.php'); }
            }""",
        "routes/web.php": ONE,
    },
}
TOLD = {
    "withRouting": ["GET api/v1/two  api", "GET up", "GET one one web", "GET more/three  web"],
    "using": ["GET one one"],
    "loadRoutesFrom": ["GET one one"],
    "a method that boot calls": ["GET blog/one blog.one web"],
    "a folder that a property names": ["GET one one", "GET two"],
    "settings": ["GET news/one one web,auth"],
    "a parent that boots": ["GET one one"],
}


@pytest.mark.parametrize("way", LOADED)
def test_files_are_loaded_as_providers_load_them(way: str) -> None:
    found = routes(LOADED[way])
    assert list(map(line, found.routes)) == TOLD[way]
    assert found.unresolved == ()
    assert not any(route.missing or route.conditional for route in found.routes)


def test_a_file_that_nothing_loads_has_no_routes_and_is_reported() -> None:
    found = routes({"routes/web.php": ONE})
    assert found.routes == ()
    told = [(one.reason, one.evidence.path) for one in found.unresolved]
    assert told == [("a routes file that no known statement loads", "routes/web.php")]


def test_a_computed_prefix_is_left_out_and_reported() -> None:
    body = """Route::prefix('{locale}/' . Locales::prefix())->group(function () {
        Route::get('one', 'C@one');
    });
    Route::get(Locales::uri(), 'C@two');"""
    found = routes({"app/A.php": booting(body)})
    [route] = found.routes
    assert route.uri == "{locale}/one"
    assert route.missing == ("the prefix is computed: Locales::prefix()",)
    assert [one.reason for one in found.unresolved] == ["the URI is computed: Locales::uri()"]


def test_defaults_of_the_environment_are_assumed() -> None:
    body = """
    Route::prefix(config('admin.path'))->middleware(config('admin.guards'))->group(function () {
        if (config('admin.debug')) { Route::get('debug', 'C@debug'); }
        if (Features::enabled('x')) { Route::get('maybe', 'C@maybe'); }
        Route::get('one', 'C@one');
    });"""
    settings = """<?php return [
        'path' => env('ADMIN_PATH', 'back'), 'guards' => explode(',', env('GUARDS', 'web,auth')),
        'debug' => env('ADMIN_DEBUG', false), 'key' => env('ADMIN_KEY', 'not to be kept'),
    ];"""
    found = routes({"app/A.php": booting(body), "config/admin.php": settings})
    told = [(line(route), route.conditional) for route in found.routes]
    assert told == [("GET back/maybe  web,auth", True), ("GET back/one  web,auth", False)]
    assert all("the default of config('admin.path')" in route.missing for route in found.routes)
    facts = read(settings).facts
    assert "not to be kept" not in str([fact.values for fact in facts])


def test_routes_of_broadcasts_are_read_and_those_of_packages_reported() -> None:
    body = """
    \\Illuminate\\Support\\Facades\\Broadcast::routes(['middleware' => ['auth:sanctum']]);
    \\Laravel\\Passport\\Passport::routes();"""
    found = routes({"app/A.php": booting(body)})
    assert list(map(line, found.routes)) == ["GET broadcasting/auth  auth:sanctum"]
    assert [one.reason for one in found.unresolved] == ["routes of a package: Passport::routes()"]


def test_files_of_no_routes_have_no_facts_of_them() -> None:
    text = """<?php namespace App\\Http\\Requests;
    /** Required by the form; includes what users enter. */
    class StoreRequest extends FormRequest {
        public function rules() { $x = 1; return ['name' => 'required', 'mail' => $this->rule()]; }
    }"""
    kinds = {fact.kind for fact in read(text).facts}
    assert kinds.isdisjoint({"routing", "routes_to", "configuration"})


def test_providers_run_in_the_order_in_which_they_are_listed() -> None:
    files = {
        "app/A.php": booting("Route::get('a', 'C@a');", "AProvider", "App"),
        "app/B.php": booting("Route::get('b', 'C@b');", "BProvider", "App"),
        "modules/C.php": booting("Route::get('c', 'C@c');", "CProvider", "Mod"),
        "bootstrap/providers.php": """<?php return [
            Mod\\CProvider::class, App\\BProvider::class, App\\AProvider::class,
        ];""",
    }
    assert [route.uri for route in routes(files).routes] == ["c", "b", "a"]
    files["config/app.php"] = """<?php use Illuminate\\Support\\ServiceProvider;
        return ['name' => env('NAME'), 'providers' => ServiceProvider::defaultProviders()->merge([
            App\\BProvider::class, App\\AProvider::class, Mod\\CProvider::class,
        ])->toArray()];"""
    del files["bootstrap/providers.php"]
    assert [route.uri for route in routes(files).routes] == ["b", "a", "c"]


def test_a_provider_that_the_application_does_not_list_does_not_run() -> None:
    files = {
        "app/A.php": provider(
            """public function register() { $this->app->register(NamedProvider::class); }
            public function boot() { Route::get('a', 'C@a'); }""",
            name="AProvider",
            space="App",
        ),
        "app/B.php": booting("Route::get('b', 'C@b');", "BProvider", "App"),
        "app/Named.php": booting("Route::get('n', 'C@n');", "NamedProvider", "App"),
        "packages/C.php": booting("Route::get('c', 'C@c');", "BlogServiceProvider", "Blog"),
    }
    assert [route.uri for route in routes(files).routes] == ["a", "b", "n", "c"]
    files["bootstrap/providers.php"] = "<?php return [App\\AProvider::class];"
    assert [route.uri for route in routes(files).routes] == ["a", "n", "c"]


def test_settings_of_a_package_have_its_name_before_their_file() -> None:
    body = "Route::prefix(config('blog.panel.route'))->group(fn () => Route::get('one', 'C@one'));"
    files = {
        "src/A.php": booting(body),
        "config/panel.php": "<?php return ['route' => env('BLOG_ROUTE', 'panel')];",
    }
    assert [route.uri for route in routes(files).routes] == ["panel/one"]


@pytest.mark.slow
def test_resolving_takes_linear_time() -> None:
    def work(size: int) -> None:
        groups = "".join(
            f"Route::prefix('p{i}')->middleware(['web', 'auth'])->group(function () {{"
            f"  Route::resource('r{i}', 'R{i}Controller'); Route::get('x', 'C@x'); }});"
            for i in range(size)
        )
        provider = booting("require base_path('routes/web.php');")
        found = routes({"app/A.php": provider, "routes/web.php": WEB + groups})
        assert len(found.routes) == 8 * size

    assert_linear(work, 40)
