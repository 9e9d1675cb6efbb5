"""Hostile route files take limited time, and exceeded limits are reported."""

from __future__ import annotations

from time import thread_time

import pytest

from rag_assets.systems.code_memory.laravel.reader import read
from rag_assets.systems.code_memory.laravel.routes.machine import collect_routes, run_providers
from rag_assets.systems.code_memory.laravel.routes.model import LaravelRoutes
from rag_assets.systems.code_memory.symbols.model import FileFacts
from tests.unit.systems.code_memory.laravel.routes_truth import PROVIDER, repository

HEAD = "<?php use Illuminate\\Support\\Facades\\Route;\n"
SECONDS = 60.0
"""What has no end takes longer; the inputs below take 3 s at most where nothing else runs."""

NESTED = "".join(f"foreach ([1, 2, 3, 4, 5, 6, 7, 8, 9, 10] as $v{i}) {{ " for i in range(9))
MANY = 100_000

LIMITED = {
    "a macro that calls itself": """
        Route::macro('again', function () { Route::again(); Route::again(); });
        Route::again();
    """,
    "a group that calls itself": """
        $group = function () use (&$group) { Route::group([], $group); Route::group([], $group); };
        Route::group([], $group);
    """,
    "a function that calls itself": """
        function again() { again(); again(); Route::get('x', 'C@x'); }
        again();
    """,
    "nested loops": f"{NESTED} Route::get('a', 'C@a'); {'}' * 9}",
    "a text that doubles": f"$a = 'aaaaaaaa'; {'$a = $a . $a; ' * 60} Route::get($a, 'C@a');",
    "a default that doubles": f"$a = env('X', 'a'); {'$a = $a . $a; ' * 60} Route::get($a, 'C@a');",
    "an array that doubles": f"""
        $a = [1, 2, 3]; {"$a = [...$a, ...$a]; " * 60}
        foreach ($a as $x) {{ Route::get("x{{$x}}", 'C@a'); }}
    """,
    "a long range": "foreach (range(1, 1000000000) as $i) { Route::get('x/' . $i, 'C@x'); }",
    "a loop without an end": "while (true) { Route::get('x', 'C@x'); }",
    "a long chain": "Route::get('x', 'C@x')" + "->middleware('a')" * 20_000 + ";",
    "resources in loops": f"""
        $all = [{", ".join(f"'r{i}' => 'C'" for i in range(1000))}];
        foreach (range(1, 1000) as $i) {{ Route::prefix("p$i")->group(function () use ($all) {{
            Route::resources($all);
        }}); }}
    """,
}


def found_in(text: str) -> tuple[LaravelRoutes, float]:
    begun = thread_time()
    found = repository(routes__web=HEAD + text)
    return found, thread_time() - begun


@pytest.mark.slow
@pytest.mark.parametrize("name", LIMITED)
def test_an_endless_file_is_abandoned_and_reported(name: str) -> None:
    found, seconds = found_in(LIMITED[name])
    assert seconds < SECONDS
    assert found.unresolved


SHAPES = {
    "brackets": "(" * MANY,
    "arrays": "$x = " + "[" * MANY + "]" * MANY + "; Route::get('a', 'C@a');",
    "groups": "Route::group([], function () { " * 5_000 + "});" * 5_000,
    "calls in arguments": "Route::get(" * 20_000 + ")" * 20_000 + ";",
    "concatenations": "Route::get(" + "'a' . " * 50_000 + "'b', 'C@a');",
    "negations": "if (" + "!" * MANY + "$x) { Route::get('a', 'C@a'); }",
    "alternatives": "if ($a) { Route::get('a', 'C@a'); }" + " elseif ($b) { }" * 20_000,
    "statements": "Route::get('a', 'C@a'); " * 20_000,
    "one long text": "Route::get('" + "a" * 10_000_000 + "', 'C@a');",
    "one long array": "Route::group([" + "'a', " * 200_000 + "], function () {});",
    "braces in a path": "Route::get('" + "{" * 1_900 + "', 'C@a');",
    "digits": "Route::get('x', ['" + "9" * 5_000 + "' => 1, 'uses' => 'C@x']);",
    "large numbers": "Route::get('x' . 0x" + "f" * 5_000 + ", 'C@x');",
    "digits of other scripts": "Route::get('x', ['²' => 1, 'uses' => 'C@x']);",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_any_shape_takes_bounded_time(name: str) -> None:
    found, seconds = found_in(SHAPES[name])
    assert seconds < SECONDS
    assert len(found.routes) <= MANY


def test_files_that_require_each_other_are_run_once_each() -> None:
    found = repository(
        routes__web=HEAD + "Route::get('web', 'C@web'); require __DIR__ . '/b.php';",
        routes__b=HEAD + "Route::get('b', 'C@b'); require __DIR__ . '/web.php';",
    )
    assert [route.uri for route in found.routes] == ["web", "b"]


@pytest.mark.slow
def test_files_that_require_others_twice_are_abandoned() -> None:
    texts = {f"routes__r{i}": HEAD + f"require __DIR__ . '/r{i + 1}.php'; " * 2 for i in range(36)}
    texts["routes__r36"] = HEAD + "Route::get('deep', 'C@deep');"
    begun = thread_time()
    found = repository(routes__web=HEAD + "require __DIR__ . '/r0.php';", **texts)
    assert thread_time() - begun < SECONDS
    assert found.unresolved


def test_classes_that_extend_each_other_are_no_providers() -> None:
    text = "<?php class AProvider extends BProvider { function boot() { $this->boot(); } }"
    other = "<?php class BProvider extends AProvider { function map() { self::boot(); } }"
    found = repository(app__A=text, app__B=other)
    assert found.routes == ()


@pytest.mark.slow
def test_a_long_line_of_ancestors_is_followed_only_so_far() -> None:
    classes = "".join(f"class P{i}Provider extends P{i + 1}Provider {{}}\n" for i in range(5_000))
    begun = thread_time()
    repository(app__P="<?php\n" + classes + "Route::get('a', 'C@a');")
    assert thread_time() - begun < SECONDS


def test_one_provider_that_has_no_end_leaves_the_others() -> None:
    endless = """<?php
        use Illuminate\\Support\\ServiceProvider;
        class AEndlessProvider extends ServiceProvider {
            public function boot() { $this->a(); }
            private function a() { $this->a(); $this->a(); $this->a(); }
        }"""
    files = {
        "app/AEndlessProvider.php": endless,
        "app/Providers/RouteServiceProvider.php": PROVIDER,
        "routes/web.php": HEAD + "Route::get('fine', 'C@fine');",
    }
    read_files = [FileFacts(path, "php", read(text).facts) for path, text in files.items()]
    found = collect_routes(run_providers(read_files))
    assert [route.uri for route in found.routes] == ["fine"]
    assert [one.reason for one in found.unresolved]


@pytest.mark.slow
def test_stars_in_a_pattern_of_files_take_linear_time() -> None:
    pattern = "a*" * 200 + "b"
    text = f"foreach (glob(__DIR__ . '/{pattern}.php') as $file) {{ require $file; }}"
    others = {f"routes__{'a' * 200}{i}": "<?php" for i in range(20)}
    begun = thread_time()
    repository(routes__web=HEAD + text, **others)
    assert thread_time() - begun < SECONDS
