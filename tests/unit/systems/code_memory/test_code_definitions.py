"""Exports and definitions that are compared, and the content of judgements."""

from pathlib import Path

import pytest
from ruamel.yaml import YAML

from benchmarks import code_routes
from benchmarks.code_definitions import __main__ as comparing

BENCHMARKS = Path(code_routes.__file__).parent


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("export const a = 1, b = 2; const c = 3;", ["a", "b"]),
        ("export default class A {}", ["default"]),
        ("export * from './x'; export { a as b } from './y';", ["*", "b"]),
        ("module.exports = { a, b: 1 };", ["a", "b"]),
    ],
)
def test_exports_are_the_names_that_others_import(text: str, names: list[str]) -> None:
    assert comparing.list_exports(text, "text/x-typescript") == names


def test_swift_types_and_functions_are_listed_once() -> None:
    text = """
struct A: B { var x: Int { 1 }; func f(a: Int) {}; func f(b: Int) {}; init() {}; enum C { case d } }
extension String { func g() {} }
func top() {}
"""
    found = comparing.list_swift_definitions(text)
    assert found == ["A", "A.C", "A.f", "A.init", "String", "String.g", "top"]


def test_judged_routes_contain_only_names() -> None:
    judged = YAML(typ="safe").load(BENCHMARKS / "code_routes.yaml")
    routes = [told for one in judged.values() for told in one["routes"].values()]
    assert len(routes) == 237
    assert {kind for route in routes for kind in route} <= set(code_routes.KINDS)
    names = [name for route in routes for names in route.values() for name in names]
    assert all(name.replace("_", "").isalnum() for name in names)


def test_sum_applications_weighs_all_names_equally() -> None:
    one = {"kinds": {"models": {"judged": 4, "found": 2, "right": 2}}}
    other = {"kinds": {"tables": {"judged": 0, "found": 2, "right": 0}}}
    assert code_routes.sum_applications([one, other]) == {"precision": 0.5, "recall": 0.5}
