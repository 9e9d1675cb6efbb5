"""The origins of objects within one file."""

from __future__ import annotations

import time

import pytest

from rag_assets.systems.code_memory.laravel.reader import read


def stated(body: str, kind: str = "goes_through", *, head: str = "function act()") -> list[object]:
    """Return the origins in a method's facts of a kind."""
    text = (
        "<?php\nnamespace App;\nuse App\\Models\\Team;\nuse Illuminate\\Support\\Facades\\Auth;\n"
        "use Illuminate\\Http\\Request;\n"
        f"class Panel {{ public Team $team; private $held;\n{head} {{ {body} }}\n"
        "function other() { $this->held = Team::find(1); } }"
    )
    symbol = "App\\Panel::act"
    facts = [fact for fact in read(text).facts if fact.kind == kind and fact.symbol == symbol]
    return [fact.values["of"] for fact in facts]


@pytest.mark.parametrize(
    ("body", "origins"),
    [
        (
            "currentTeam()->servers()->first()->stop();",
            ["currentTeam()->servers()->first()->stop()"],
        ),
        ("$t = currentTeam(); $t?->stop();", ["currentTeam()->stop()"]),
        ("$this->team->servers()->act();", ["App\\Models\\Team->servers()->act()"]),
        ("$this->held->servers()->act();", ["App\\Models\\Team::find()->servers()->act()"]),
        ("foreach (all() as $k => $one) { $one->stop(); }", ["all()->[]->stop()"]),
        ("all()[0]->stop();", ["all()->[]->stop()"]),
        ("all()->each(function ($one) { $one->stop(); });", ["all()->[]->stop()"]),
        ("Auth::user()->teams()->first();", ["@user->teams()->first()"]),
        ("auth()->user()->teams();", ["@user->teams()"]),
        ("request()->user()->teams();", ["@user->teams()"]),
        ("$t = $a ? one() : two(); $t->stop();", ["one()->stop()", "two()->stop()"]),
        ("$t = one() ?? abort(404); $t->stop();", ["one()->stop()"]),
        ("$t = null; $t = one(); $t->stop();", ["one()->stop()"]),
        (
            "$t = match (1) { 1 => one(), default => throw new E }; $t->stop();",
            ["one()->stop()"],
        ),
        ("$q = one(); $q = $q->where(); $q->stop();", ["one()->stop()"]),
        ("optional(one())->stop();", ["one()->stop()"]),
        ("app(Team::class)->servers()->act();", ["App\\Models\\Team->servers()->act()"]),
        ("$this->team->owner->stop();", ["App\\Models\\Team->owner->stop()"]),
    ],
)
def test_a_chain_is_told_from_where_it_begins(body: str, origins: list[str]) -> None:
    assert origins in stated(body)


@pytest.mark.parametrize(
    "body",
    [
        "$t = $unknown; $t->stop();",
        "$t = one(); $t = $unknown; $t->stop();",
        "[$t] = one(); $t->stop();",
        "all()->whereHas('x', function ($q) { $q->stop(); });",
        "$t = [one()]; $t->stop();",
    ],
)
def test_what_is_computed_is_told_of_nothing(body: str) -> None:
    assert not [one for one in stated(body) if "stop()" in str(one)]


def test_what_its_own_file_tells_is_not_told_again() -> None:
    assert stated("Team::where('a', 1)->orderBy('b')->get(); $this->team->save();") == []


@pytest.mark.parametrize(
    ("head", "body", "given"),
    [
        (
            "function act()",
            "return Auth::user()?->currentTeam() ?? null;",
            ["@user->currentTeam()"],
        ),
        ("function act()", "if (x()) { return null; } return Team::find(1);", None),
        ("/** @return Team|null */\nfunction act()", "return $x;", ["App\\Models\\Team"]),
        ("/** @return Team[] */\nfunction act()", "return $x;", ["App\\Models\\Team::all()"]),
        ("/** @param Team $t */\nfunction act($t)", "return $t->owner();", None),
    ],
)
def test_what_a_method_gives_that_declares_nothing(
    head: str, body: str, given: list[str] | None
) -> None:
    expected = (
        given
        or {
            "if": ["App\\Models\\Team::find()"],
            "return": ["App\\Models\\Team->owner()"],
        }[body.split(maxsplit=1)[0]]
    )
    assert stated(body, "gives", head=head) == [expected]


def test_what_returns_something_that_is_computed_gives_nothing() -> None:
    assert stated("if (1) { return one(); } return $x;", "gives") == []
    assert stated("return one();", "gives", head="function act(): Team") == []
    assert stated("$f = function () { return one(); }; $f();", "gives") == []


@pytest.mark.parametrize(
    "body",
    [
        "$a" + "->b()" * 20_000 + ";",
        "one()" + "->b" * 20_000 + "->c();",
        "$a = " + "one(" * 5_000 + ")" * 5_000 + "; $a->b();",
        "$a = " + "$b ?? " * 5_000 + "$b; $a->x();",
        "".join(f"$v{n} = $v{n + 1} ?? $v{n + 1} ?? $v{n + 2};" for n in range(3_000))
        + "$v0->x();",
        "$a = one(); " + "$a = $a->b();" * 5_000 + "$a->x();",
        "$a = one();" + "$a->b()->c();" * 5_000,
    ],
    ids=["calls", "properties", "arguments", "choices", "variables", "again", "many"],
)
def test_hostile_bodies_are_read_in_time(body: str) -> None:
    began = time.process_time()
    stated(body)
    assert time.process_time() - began < 20
