"""Routes of Laravel are those of its router."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.systems.code_memory.laravel.routes_truth import ours, repository, routes_by_laravel

HEAD = """<?php
use Illuminate\\Support\\Facades\\Route;
use App\\Http\\Controllers\\{PhotoController, UserController as Users};
use App\\Http\\Controllers\\Api;
"""
FORMS = {
    "verbs": """
        Route::get('a', [PhotoController::class, 'index']);
        Route::post('/b/', [PhotoController::class, 'store']);
        Route::put('c', fn () => 1); Route::patch('d', function () { return 2; });
        Route::delete('e', 'App\\Http\\Controllers\\PhotoController@destroy');
        Route::options('f', PhotoController::class);
        Route::any('g', [Users::class, 'any']);
        Route::match(['get', 'POST'], 'h', [Api\\SearchController::class, 'both']);
        Route::match('put', 'i', [Users::class, 'one']);
        Route::get('/', Users::class); Route::get('', Users::class)->name('again');
    """,
    "names": """
        Route::get('a', Users::class)->name('x')->name('.y');
        Route::name('admin.')->group(function () {
            Route::get('b', Users::class)->name('b');
            Route::get('c', Users::class);
            Route::as('in.')->group(function () { Route::get('d', Users::class)->name('d'); });
            Route::get('e', ['as' => 'e', 'uses' => 'C@e']);
        });
    """,
    "actions": """
        Route::get('a', ['uses' => 'C@m', 'as' => 'a', 'middleware' => 'auth']);
        Route::get('b', ['uses' => 'C@m', 'middleware' => ['auth', 'x:1']]);
        Route::get('c', ['middleware' => 'auth', function () {}]);
        Route::get('d', ['as' => 'd', 'uses' => function () {}]);
        Route::get('e', '\\App\\Other@m');
        Route::get('f')->uses('App\\Third@m');
        Route::get('g', ['uses' => 'C@m', 'prefix' => 'own', 'where' => ['x' => '1']]);
        Route::get('h', ['domain' => 'x.test', 'uses' => 'C@m']);
    """,
    "views": """
        Route::view('/welcome', 'welcome', ['a' => 1])->name('w');
        Route::redirect('/here', '/there', 301)->middleware('x');
        Route::permanentRedirect('old', 'new');
        Route::fallback(fn () => 1)->name('none');
    """,
    "prefixes": """
        Route::prefix('a')->group(function () {
            Route::get('/', Users::class);
            Route::get('/x/', Users::class)->prefix('before');
            Route::prefix('/b/')->group(function () {
                Route::prefix('c')->get('d', [Users::class, 'd']);
                Route::get('e', ['prefix' => 'f', 'uses' => 'C@m']);
            });
        });
        Route::prefix('p')->middleware('m')->name('n.')->get('q', Users::class)->name('q');
        Route::prefix('p')->match(['get', 'put'], 'r', [Users::class, 'r']);
        Route::prefix('p')->any('s', 'C@s');
        Route::middleware('m')->post('t', ['uses' => 'C@t', 'as' => 't']);
    """,
    "arrays": """
        Route::group(['prefix' => 'a', 'as' => 'a.', 'namespace' => 'App\\A', 'middleware' => 'w'],
            function () {
                Route::get('x', 'C@x')->name('x');
                Route::get('y', '\\B\\C@y'); Route::get('z', [Users::class, 'z']);
                Route::get('i', 'Inv');
                Route::group(['namespace' => 'Sub', 'middleware' => ['b', 'c']], function () {
                    Route::get('s', 'C@s')->middleware('d', 'e')->middleware(['f']);
                    Route::middleware('q')->get('t', 'C@t');
                });
                Route::group(['namespace' => '\\\\Abs\\\\', 'domain' => 'a.test'], function () {
                    Route::get('u', 'C@u');
                    Route::group(['domain' => '{account}.test'], function () {
                        Route::get('v/{x}', 'C@v')->domain('https://other.test');
                        Route::get('w/{x}', 'C@w');
                    });
                });
                Route::resource('photos', 'PhotoController');
            });
    """,
    "middleware": """
        Route::middleware(['a', 'b'])->withoutMiddleware('c')->group(function () {
            Route::get('x', Users::class)->withoutMiddleware(['d'])->can('update', 'post');
            Route::get('y', Users::class)->can('see')->can('edit', ['post', 'user']);
            Route::middleware('a')->middleware('e')->get('z', Users::class);
            Route::withoutMiddleware('f')->withoutMiddleware(['g'])->group(function () {
                Route::get('w', Users::class)->middleware(Users::class, 'throttle:60,1');
            });
        });
    """,
    "controllers": """
        Route::controller(PhotoController::class)->prefix('p')->group(function () {
            Route::get('/', 'index'); Route::post('x', 'store')->name('s');
            Route::get('other', 'C@other'); Route::get('array', [Users::class, 'm']);
            Route::get('inv', Users::class);
            Route::controller(Users::class)->group(function () { Route::get('in', 'inner'); });
        });
    """,
    "parameters": """
        Route::get('{a}/{b?}', Users::class)->where('a', '[0-9]+')->where(['b' => '.*']);
        Route::get('u/{user:slug}/{post:id?}', Users::class)->whereNumber('user');
        Route::get('w/{a}/{b}', Users::class)->whereAlpha(['a', 'b'])->whereUuid('b');
        Route::get('x/{a}', Users::class)->whereAlphaNumeric('a')->whereIn('a', ['x', 'y']);
        Route::where(['id' => '[a-z]+'])->group(function () {
            Route::get('g/{id}', Users::class);
            Route::get('h/{id}', Users::class)->where('id', '1');
        });
        Route::domain('{tenant:slug}.test')->group(function () {
            Route::get('t/{a}', Users::class);
        });
    """,
    "resources": """
        Route::resource('photos', PhotoController::class);
        Route::apiResource('api-keys', Users::class)->names('keys');
        Route::resources(['a' => 'A', 'b/c' => 'B'], ['only' => ['index', 'show']]);
        Route::apiResources(['d' => 'D', 'e' => 'E'], ['except' => ['index']]);
        Route::resource('people', 'P')->only('index', 'edit')->names(['index' => 'all']);
        Route::resource('news', 'N')->except(['create', 'edit'])->parameters(['news' => 'item']);
        Route::resource('photos.comments', 'PC')->shallow();
        Route::resource('photos.comments.likes', 'PCL', ['as' => 'x', 'middleware' => 'm']);
        Route::resource('posts.tags', 'PT')->scoped(['tag' => 'slug'])->where(['tag' => '[a-z]+']);
        Route::resource('o', 'O', ['names' => 'short', 'parameters' => ['o' => 'oh']]);
        Route::resource('q', 'Q')->middleware(['a', 'b'])->withoutMiddleware('c')->whereNumber('q');
        Route::resource('s', 'S')->shallow(false)->missing(fn () => 1);
        Route::apiResource('t', 'T')->except('show');
        Route::apiResource('u', 'U', ['except' => 'show'])->only(['show', 'create']);
    """,
    "resources in groups": """
        Route::prefix('admin')->name('admin.')->middleware('auth')->group(function () {
            Route::resource('photos', PhotoController::class)->middleware('x');
            Route::namespace('Sub')->group(function () { Route::apiResource('c.d', 'CD'); });
            Route::resource('x/y', 'XY')->names('z');
        });
        Route::middleware('m')->resource('r', PhotoController::class)->only('index');
        Route::prefix('ignored')->name('n')->apiResource('s', PhotoController::class);
        Route::resource('categories.media-files', 'M');
        Route::resource('a.b', 'AB', ['only' => 'show', 'shallow' => true]);
    """,
    "duplicates": """
        Route::get('a', 'C@one')->name('one'); Route::get('b', 'C@b');
        Route::get('a', 'C@two')->name('two'); Route::post('a', 'C@three');
        Route::any('a', 'C@any'); Route::match(['get', 'options'], 'a', 'C@four');
        Route::domain('x.test')->group(function () { Route::get('a', 'C@five'); });
    """,
    "values": """
        $base = 'a'; $name = "{$base}.x"; $list = ['one' => 'C@one', 'two' => 'C@two'];
        Route::get($base . '/' . 'b', 'C@m')->name($name);
        foreach ($list as $key => $action) { Route::get("{$key}/{id}", $action)->name($key); }
        foreach (['x', 'y'] as $one): Route::post($one . '/' . $base, 'C@m'); endforeach;
        $routes = function () { Route::get('inner', 'C@inner'); };
        Route::group(['prefix' => 'v1'], $routes); Route::prefix('v2')->group($routes);
        $group = ['prefix' => 'g', 'middleware' => ['a', 'b']];
        Route::group($group, fn () => Route::get('arrow', 'C@arrow'));
        if (true) { Route::get('yes', 'C@yes'); } else { Route::get('no', 'C@no'); }
        Route::get(sprintf('%s/%d', 's', 5), 'C@m'); Route::get(implode('/', ['i', 'j']), 'C@m');
        $x = $base === 'q' ?: 'w'; Route::get(strtoupper('up') . ucfirst('case'), 'C@m');
        $nothing = null; Route::get($nothing ?? 'default', 'C@m');
    """,
    "routers": """
        $router->get('a', 'C@a'); $router->group(['prefix' => 'b'], function ($r) use ($router) {
            $r->get('c', 'C@c'); $router->resource('d', 'D');
        });
        app('router')->post('e', 'C@e');
        Route::group(['prefix' => 'f'], function (\\Illuminate\\Routing\\Router $any) {
            $any->prefix('g')->group(static function () use ($any): void {
                $any->get('h', 'C@h');
            });
        });
    """,
}


def judged(tmp_path: Path, texts: list[str]) -> list[list[dict[str, object]]]:
    paths = []
    for index, text in enumerate(texts):
        paths.append(tmp_path / f"{index}.php")
        paths[-1].write_text(text, encoding="utf-8")
    return routes_by_laravel(paths, tmp_path)


@pytest.mark.slow
def test_every_form_is_read_as_the_router_does(tmp_path: Path) -> None:
    truths = judged(tmp_path, [HEAD + text for text in FORMS.values()])
    for (form, text), truth in zip(FORMS.items(), truths, strict=True):
        found = repository(routes__web=HEAD + text)
        assert [ours(route) for route in found.routes] == truth, form
        assert found.unresolved == (), form
        assert not any(route.missing or route.conditional for route in found.routes), form
        assert truth, form


LATER_HEAD = """<?php
use Illuminate\\Support\\Facades\\Route;
"""
_ULID = "[0-7][0-9a-hjkmnp-tv-zA-HJKMNP-TV-Z]{25}"
_UUID = "[\\da-fA-F]{8}-[\\da-fA-F]{4}-[\\da-fA-F]{4}-[\\da-fA-F]{4}-[\\da-fA-F]{12}"
LATER_FORMS: dict[str, tuple[str, list[str]]] = {
    "controllers of groups": (
        """
        Route::controller(PhotoController::class)->prefix('p')->group(function () {
            Route::get('/', 'index');
            Route::post('x', 'store')->name('s');
        });
        """,
        ["GET|HEAD p - PhotoController@index", "POST p/x s PhotoController@store"],
    ),
    "singletons": (
        "Route::singleton('profile', 'ProfileController');",
        [
            "GET|HEAD profile profile.show ProfileController@show",
            "GET|HEAD profile/edit profile.edit ProfileController@edit",
            "PUT|PATCH profile profile.update ProfileController@update",
        ],
    ),
    "singletons below a path": (
        "Route::singleton('a/b', 'AB')->only(['edit']);",
        ["GET|HEAD a/b/edit b.edit AB@edit"],
    ),
    "scoped bindings": (
        """
        Route::scopeBindings()->group(function () {
            Route::get('u/{user}/p/{post:slug}', 'C@scoped')->withoutScopedBindings();
        });
        """,
        ["GET|HEAD u/{user}/p/{post} - C@scoped fields=post:slug"],
    ),
    "trashed models": (
        "Route::get('t/{user}', 'C@trashed')->withTrashed()->scopeBindings()->can('view', 'user');",
        ["GET|HEAD t/{user} - C@trashed middleware=can:view,user"],
    ),
    "resources with trashed models": (
        "Route::resource('films', 'F')->withTrashed(['show'])->only(['show', 'index']);",
        ["GET|HEAD films films.index F@index", "GET|HEAD films/{film} films.show F@show"],
    ),
    "resources that can be trashed": (
        "Route::softDeletableResources(['soft' => 'Soft']);",
        [
            "GET|HEAD soft soft.index Soft@index",
            "GET|HEAD soft/create soft.create Soft@create",
            "POST soft soft.store Soft@store",
            "GET|HEAD soft/{soft} soft.show Soft@show",
            "GET|HEAD soft/{soft}/edit soft.edit Soft@edit",
            "PUT|PATCH soft/{soft} soft.update Soft@update",
            "DELETE soft/{soft} soft.destroy Soft@destroy",
        ],
    ),
    "abilities of groups": (
        """
        Route::can('edit', 'post')->middleware('m')->group(function () {
            Route::get('can', 'C@can')->middleware('n');
            Route::can('see')->get('see', 'C@see');
        });
        """,
        [
            "GET|HEAD can - C@can middleware=m,can:edit,post,n",
            "GET|HEAD see - C@see middleware=m,can:edit,post,can:see",
        ],
    ),
    "constraints of groups": (
        """
        Route::whereUlid('id')->whereIn('kind', ['a', 'b'])->group(function () {
            Route::get('w/{id}/{kind}', 'C@w')->whereUuid('id');
        });
        """,
        [f"GET|HEAD w/{{id}}/{{kind}} - C@w wheres=id:{_UUID},kind:a|b"],
    ),
    "constraints": (
        """
        Route::get('z/{x}', 'C@z')->whereUlid('x')->whereIn('y', ['1', '2'])
            ->missing(fn () => 1)->block();
        """,
        [f"GET|HEAD z/{{x}} - C@z wheres=x:{_ULID},y:1|2"],
    ),
    "namespaces": (
        """
        Route::namespace('App\\Http')->group(function () {
            Route::get('ns', 'App\\Http\\C@m');
            Route::get('inv', \\App\\Http\\Inv::class);
        });
        """,
        ["GET|HEAD ns - App\\Http\\C@m", "GET|HEAD inv - App\\Http\\Inv@__invoke"],
    ),
    "methods in common": (
        """
        Route::match(['get', 'post'], 'both', 'C@both');
        Route::get('both', 'C@get');
        """,
        ["GET|POST|HEAD both - C@both", "GET|HEAD both - C@get"],
    ),
    "redirects and views": (
        """
        Route::redirect('here', 'there')->name('r');
        Route::view('v', 'v', status: 200)->middleware('w');
        """,
        ["GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS here r there", "GET|HEAD v - v middleware=w"],
    ),
    "attributes before a singleton": (
        "Route::middleware(['a'])->withoutMiddleware('b')->singleton('shown', 'G')->only('show');",
        ["GET|HEAD shown shown.show G@show middleware=a without=b"],
    ),
    "resources in groups": (
        """
        Route::name('x.')->prefix('x')->group(function () {
            Route::resource('media-files.tags', 'MT')->scoped()->only('show');
        });
        """,
        ["GET|HEAD x/media-files/{media_file}/tags/{tag} x.media-files.tags.show MT@show"],
    ),
}


def shown(route: dict[str, Any]) -> str:
    found = ["|".join(route["methods"]), route["uri"], route["name"] or "-", route["action"]]
    for key in ("middleware", "without"):
        found += [f"{key}={','.join(route[key])}"] if route[key] else []
    for key in ("wheres", "fields"):
        pairs = ",".join(f"{name}:{value}" for name, value in route[key].items())
        found += [f"{key}={pairs}"] if pairs else []
    return " ".join(found)


@pytest.mark.parametrize("form", LATER_FORMS)
def test_a_form_of_a_later_version_is_read_as_that_has_it(form: str) -> None:
    text, truth = LATER_FORMS[form]
    found = repository("^12.0", routes__web=LATER_HEAD + text)
    assert [shown(ours(route)) for route in found.routes] == truth
    assert found.unresolved == ()
    assert not any(route.missing or route.conditional for route in found.routes)


@pytest.mark.parametrize(
    "text",
    [
        "Route::apiSingleton('logo', 'L');",
        "Route::singleton('avatar', 'A')->creatable();",
        "Route::resource('mf', 'M')->middlewareFor('store', 'two');",
        "Route::pattern('id', '[0-9]+');",
        "Route::inertia('about', 'About');",
    ],
)
def test_a_call_that_is_not_read_is_reported(text: str) -> None:
    found = repository("^12.0", routes__web=LATER_HEAD + text)
    assert found.routes == ()
    assert len(found.unresolved) == 1
