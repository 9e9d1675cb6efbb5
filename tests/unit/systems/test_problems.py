"""Errors of systems become problems of the API, like those of the core."""

from __future__ import annotations

from rag_assets.api.problems import KINDS, get_kinds_by_error, get_problem_kind
from rag_assets.plugins.registry import installed_systems


def test_each_problem_of_a_system_has_the_name_that_the_system_declares() -> None:
    problems = installed_systems().load("problems")
    assert problems
    assert {name: get_problem_kind(error).name for name, error in problems.items()} == {
        name: name for name in problems
    }


def test_problems_of_systems_are_documented_with_those_of_the_core() -> None:
    assert set(get_kinds_by_error()) == {*KINDS, *installed_systems().load("problems").values()}
