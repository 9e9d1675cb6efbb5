"""Searches that fetch only the first candidates return the same hits as with all of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_assets.search import recall
from rag_assets.search.model import Hit
from tests.back_ends import EACH_BACK_END
from tests.driving import Driver
from tests.installation import FAST, Installation

pytestmark = EACH_BACK_END

PAGES, HITS = 60, 5


@pytest.fixture(scope="module")
def folder(shared_installation: Installation, driver: Driver) -> Path:
    folder = shared_installation.add_tenant("many", **FAST)
    for number in range(PAGES):
        # Word frequencies and text lengths vary in steps: scores differ, and some are equal.
        words = "valve " * (number % 20 + 1) + "pump " * (20 - number % 20)
        (folder / f"{number}.md").write_text(f"Page {number}: {words}\n")
    for number in range(30):
        (folder / f"same-{number}.md").write_text("Each of these says gasket, and no more.\n")
    driver.sync("many")
    return folder


def both(installation: Installation, query: str, mode: str) -> tuple[Hit, ...]:
    """Return the hits, and fail if they differ when every candidate is fetched."""
    found = installation.search("many", query, mode=mode, top_k=HITS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recall, "compute_first_count", lambda progress: None)
        assert installation.search("many", query, mode=mode, top_k=HITS) == found
    return found


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("mode", ["knn", "text"])
def test_the_hits_are_the_same(shared_installation: Installation, mode: str) -> None:
    for query in ("valve", "pump", "valve or pump", "Page 7", "page"):
        assert len(both(shared_installation, query, mode)) == HITS
    [same, *_] = both(shared_installation, "gasket", "text")
    # Every equal text is named, even if few candidates were fetched first.
    assert len(same.also) == 29


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("mode", ["knn", "text"])
def test_withdrawn_documents_are_replaced_by_the_next_best(
    shared_installation: Installation, driver: Driver, mode: str
) -> None:
    query, catalog = "valve", driver.session.catalog
    ref = catalog.tenants.get("many").ref
    nearest = shared_installation.search("many", query, mode=mode, top_k=20)
    for hit in nearest:
        catalog.removals.remove(ref, hit.document_id, "a test")
    withdrawn = {hit.document_id for hit in nearest}
    found = both(shared_installation, query, mode)
    assert len(found) == HITS
    assert withdrawn.isdisjoint(hit.document_id for hit in found)
