"""Names with the same meaning, in any spelling."""

from __future__ import annotations

import pytest

from rag_assets.systems.experience.patterns import Aliases


@pytest.mark.parametrize(
    ("asked", "stored"),
    [
        ("postgres", "PostgreSQL"),
        ("K8s", "kubernetes"),
        ("Java Script", "js"),
        ("node.js", "NodeJS"),
        ("Front-End", "frontend"),
        ("backend_developer", "Backend Developer"),
        ("ＧＯ", "golang"),
        ("Прораб", "прораб"),
        ("c#", "CSharp"),
    ],
)
def test_spellings_of_one_name_are_equal(asked: str, stored: str) -> None:
    assert Aliases({}).find_spellings(asked, {stored, "other"}) == (stored,)
    for name, other in (("java", "javascript"), ("c", "c++"), ("c", "c#")):
        assert Aliases({}).find_spellings(name, {other}) == ()


def test_a_tenant_has_names_of_its_own_and_replaces_shipped_ones() -> None:
    own = Aliases({"Kundenportal": ["KP", "customer portal"], "PostgreSQL": ["pg"]})
    portals = ("Customer-Portal", "kundenportal")
    assert own.find_spellings("kp", {*portals}) == portals
    assert own.find_spellings("pg", {"postgresql", "postgres"}) == ("postgresql",)
