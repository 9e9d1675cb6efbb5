"""A caller with more scopes than a filter can hold finds the same as one with few."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_assets.search import access, recall
from tests.back_ends import EACH_BACK_END
from tests.driving import Driver
from tests.installation import FAST, Installation

pytestmark = EACH_BACK_END

SCOPES = 12
TENANT = "many-scopes"


@pytest.fixture(scope="module")
def shared(shared_installation: Installation, driver: Driver) -> Installation:
    root: Path = shared_installation.home.parent / "sources" / TENANT
    sources = []
    for number in range(SCOPES):
        folder = root / f"s{number}"
        folder.mkdir(parents=True)
        for copy in range(30):
            (folder / f"{copy}.md").write_text(f"# Valve\n\nThe valve {copy} of {number}.\n")
        sources.append({"name": f"s{number}", "root": str(folder), "scope": f"s{number}"})
    shared_installation.add_tenant(TENANT, root=root, **{**FAST, "sources": sources})
    driver.sync(TENANT)
    catalog = driver.session.catalog
    ref = catalog.tenants.get(TENANT).ref
    for number in range(SCOPES):
        catalog.access.grant(ref, f"s{number}", ["all", *(["four"] if number < 4 else [])])
    catalog.access.grant(ref, "s11", ["one"])
    return shared_installation


def found(shared: Installation, principal: str, mode: str) -> list[str]:
    options = {"mode": mode, "top_k": 10, "caller": {"principals": [principal]}}
    return [hit.uri for hit in shared.search(TENANT, "the valve 7", **options)]


@pytest.mark.parametrize("mode", ["text", "knn", "hybrid"])
@pytest.mark.parametrize("principal", ["all", "four", "one", "nobody"])
def test_the_same_is_found_with_and_without_a_filter(
    shared: Installation, monkeypatch: pytest.MonkeyPatch, principal: str, mode: str
) -> None:
    filtered = found(shared, principal, mode)
    assert len(filtered) == (0 if principal == "nobody" else 10)
    monkeypatch.setattr("rag_assets.search.plan.MANY_SCOPES", 0)
    unfiltered = found(shared, principal, mode)
    assert access.MANY_SCOPES > SCOPES > recall._UNFILTERED_FACTOR
    scopes = {uri.partition("/")[0] for uri in unfiltered}
    assert scopes <= {uri.partition("/")[0] for uri in filtered} | (
        {f"s{number}" for number in range({"all": 12, "four": 4}.get(principal, 0))}
    )
    assert len(unfiltered) == len(filtered)
    if principal == "one" and mode != "hybrid":
        # Too little was left: the index was asked once more, by scopes.
        assert unfiltered == filtered
