"""Forms of routes that Laravel 8 lacks, as in version 12 of the framework."""

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
    "singletons below a path": (
        """
        Route::singleton('a/b', 'AB')->only(['edit']);
        """,
        [
            "GET|HEAD a/b/edit b.edit AB@edit",
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
    "resources in groups": (
        """
        Route::name('x.')->prefix('x')->group(function () {
            Route::resource('media-files.tags', 'MT')->scoped()->only('show');
        });
        """,
        [
            "GET|HEAD x/media-files/{media_file}/tags/{tag} x.media-files.tags.show MT@show",
        ],
    ),
}


def shown(route: dict[str, Any]) -> str:
    """Return a route as one line."""
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
    found = repository("^12.0", routes__web=HEAD + text)
    assert found.routes == ()
    assert len(found.unresolved) == 1
