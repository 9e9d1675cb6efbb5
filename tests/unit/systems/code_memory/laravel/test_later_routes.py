"""Forms of routes that Laravel 8 lacks, as version 12 of the framework has them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.systems.code_memory.laravel.routes_truth import ours, repository

HEAD = """<?php
use Illuminate\\Support\\Facades\\Route;
"""
_ULID = "[0-7][0-9a-hjkmnp-tv-zA-HJKMNP-TV-Z]{25}"
_UUID = "[\\da-fA-F]{8}-[\\da-fA-F]{4}-[\\da-fA-F]{4}-[\\da-fA-F]{4}-[\\da-fA-F]{12}"

FORMS: dict[str, tuple[str, list[str]]] = {
    "controllers of groups": (
        """
        Route::controller(PhotoController::class)->prefix('p')->group(function () {
            Route::get('/', 'index');
            Route::post('x', 'store')->name('s');
        });
        """,
        [
            "GET|HEAD p - PhotoController@index",
            "POST p/x s PhotoController@store",
        ],
    ),
    "singletons": (
        """
        Route::singleton('profile', 'ProfileController');
        """,
        [
            "GET|HEAD profile profile.show ProfileController@show",
            "GET|HEAD profile/edit profile.edit ProfileController@edit",
            "PUT|PATCH profile profile.update ProfileController@update",
        ],
    ),
    "creatable singletons": (
        """
        Route::singleton('photos.thumbnail', 'T')->creatable();
        """,
        [
            "GET|HEAD photos/{photo}/thumbnail photos.thumbnail.show T@show",
            "GET|HEAD photos/{photo}/thumbnail/edit photos.thumbnail.edit T@edit",
            "PUT|PATCH photos/{photo}/thumbnail photos.thumbnail.update T@update",
            "GET|HEAD photos/{photo}/thumbnail/create photos.thumbnail.create T@create",
            "POST photos/{photo}/thumbnail photos.thumbnail.store T@store",
            "DELETE photos/{photo}/thumbnail photos.thumbnail.destroy T@destroy",
        ],
    ),
    "destroyable singletons": (
        """
        Route::singleton('avatar', 'A')->destroyable()->middleware('auth');
        """,
        [
            "GET|HEAD avatar avatar.show A@show middleware=auth",
            "GET|HEAD avatar/edit avatar.edit A@edit middleware=auth",
            "PUT|PATCH avatar avatar.update A@update middleware=auth",
            "DELETE avatar avatar.destroy A@destroy middleware=auth",
        ],
    ),
    "singletons of interfaces": (
        """
        Route::apiSingleton('settings', 'S');
        """,
        [
            "GET|HEAD settings settings.show S@show",
            "PUT|PATCH settings settings.update S@update",
        ],
    ),
    "creatable singletons of interfaces": (
        """
        Route::apiSingleton('logo', 'L')->creatable()->except('show');
        """,
        [
            "PUT|PATCH logo logo.update L@update",
            "POST logo logo.store L@store",
            "DELETE logo logo.destroy L@destroy",
        ],
    ),
    "several singletons": (
        """
        Route::singletons(['one' => 'O', 'two' => 'W'], ['only' => 'show']);
        """,
        [
            "GET|HEAD one one.show O@show",
            "GET|HEAD two two.show W@show",
        ],
    ),
    "singletons below a path": (
        """
        Route::singleton('a/b', 'AB')->only(['edit']);
        """,
        [
            "GET|HEAD a/b/edit b.edit AB@edit",
        ],
    ),
    "shallow singletons": (
        """
        Route::singleton('users.card', 'C', ['shallow' => true])->names('kards');
        """,
        [
            "GET|HEAD users/{user}/card kards.show C@show",
            "GET|HEAD card/edit kards.edit C@edit",
            "PUT|PATCH card kards.update C@update",
        ],
    ),
    "scoped bindings": (
        """
        Route::scopeBindings()->group(function () {
            Route::get('u/{user}/p/{post:slug}', 'C@scoped')->withoutScopedBindings();
        });
        """,
        [
            "GET|HEAD u/{user}/p/{post} - C@scoped fields=post:slug",
        ],
    ),
    "trashed models": (
        """
        Route::get('t/{user}', 'C@trashed')->withTrashed()->scopeBindings()->can('view', 'user');
        """,
        [
            "GET|HEAD t/{user} - C@trashed middleware=can:view,user",
        ],
    ),
    "resources with trashed models": (
        """
        Route::resource('films', 'F')->withTrashed(['show'])->only(['show', 'index']);
        """,
        [
            "GET|HEAD films films.index F@index",
            "GET|HEAD films/{film} films.show F@show",
        ],
    ),
    "resources that can be trashed": (
        """
        Route::softDeletableResources(['soft' => 'Soft']);
        """,
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
    "middleware of single methods": (
        """
        Route::resource('mf', 'M')->middleware('all')
            ->middlewareFor(['show', 'index'], ['one'])
            ->middlewareFor('store', 'two')
            ->withoutMiddlewareFor('destroy', 'all')
            ->only(['index', 'show', 'store', 'destroy']);
        """,
        [
            "GET|HEAD mf mf.index M@index middleware=all,one",
            "POST mf mf.store M@store middleware=all,two",
            "GET|HEAD mf/{mf} mf.show M@show middleware=all,one",
            "DELETE mf/{mf} mf.destroy M@destroy middleware=all without=all",
        ],
    ),
    "constraints of groups": (
        """
        Route::whereUlid('id')->whereIn('kind', ['a', 'b'])->group(function () {
            Route::get('w/{id}/{kind}', 'C@w')->whereUuid('id');
        });
        """,
        [
            f"GET|HEAD w/{{id}}/{{kind}} - C@w wheres=id:{_UUID},kind:a|b",
        ],
    ),
    "constraints": (
        """
        Route::get('z/{x}', 'C@z')->whereUlid('x')->whereIn('y', ['1', '2'])
            ->missing(fn () => 1)->block();
        """,
        [
            f"GET|HEAD z/{{x}} - C@z wheres=x:{_ULID},y:1|2",
        ],
    ),
    "namespaces": (
        """
        Route::namespace('App\\Http')->group(function () {
            Route::get('ns', 'App\\Http\\C@m');
            Route::get('inv', \\App\\Http\\Inv::class);
        });
        """,
        [
            "GET|HEAD ns - App\\Http\\C@m",
            "GET|HEAD inv - App\\Http\\Inv@__invoke",
        ],
    ),
    "methods in common": (
        """
        Route::match(['get', 'post'], 'both', 'C@both');
        Route::get('both', 'C@get');
        """,
        [
            "GET|POST|HEAD both - C@both",
            "GET|HEAD both - C@get",
        ],
    ),
    "redirects and views": (
        """
        Route::redirect('here', 'there')->name('r');
        Route::view('v', 'v', status: 200)->middleware('w');
        """,
        [
            "GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS here r there",
            "GET|HEAD v - v middleware=w",
        ],
    ),
    "attributes before a singleton": (
        """
        Route::middleware(['a'])->withoutMiddleware('b')->singleton('guarded', 'G')->only('show');
        """,
        [
            "GET|HEAD guarded guarded.show G@show middleware=a without=b",
        ],
    ),
    "singletons in groups": (
        """
        Route::name('x.')->prefix('x')->group(function () {
            Route::apiSingleton('deep.thing', 'D')->creatable();
            Route::resource('media-files.tags', 'MT')->scoped()->only('show');
        });
        """,
        [
            "GET|HEAD x/deep/{deep}/thing x.deep.thing.show D@show",
            "PUT|PATCH x/deep/{deep}/thing x.deep.thing.update D@update",
            "POST x/deep/{deep}/thing x.deep.thing.store D@store",
            "DELETE x/deep/{deep}/thing x.deep.thing.destroy D@destroy",
            "GET|HEAD x/media-files/{media_file}/tags/{tag} x.media-files.tags.show MT@show",
        ],
    ),
}


def shown(route: dict[str, Any]) -> str:
    """A route in one line."""
    found = ["|".join(route["methods"]), route["uri"], route["name"] or "-", route["action"]]
    for key in ("middleware", "without"):
        found += [f"{key}={','.join(route[key])}"] if route[key] else []
    for key in ("wheres", "fields"):
        pairs = ",".join(f"{name}:{value}" for name, value in route[key].items())
        found += [f"{key}={pairs}"] if pairs else []
    return " ".join(found)


@pytest.mark.parametrize("form", FORMS)
def test_a_form_of_a_later_version_is_read_as_that_has_it(form: str) -> None:
    text, truth = FORMS[form]
    found = repository("^12.0", routes__web=HEAD + text)
    assert [shown(ours(route)) for route in found.routes] == truth
    assert found.unresolved == ()
    assert all(route.complete for route in found.routes)
