"""A source with a version is listed when that has changed, not for each slice of a run."""

from __future__ import annotations

import pytest

from rag_assets.ingest.sources.model import SourceMetadata
from rag_assets.ingest.sources.records import RecordsSource
from rag_assets.pipeline.context import SliceLimits
from rag_assets.storage.catalog.records.model import PushedRecord
from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.records import put_record, remove_record

TENANT = "pushed"


@pytest.fixture
def listings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the name of each source that is listed."""
    seen: list[str] = []
    former = RecordsSource.list

    def listing(source: RecordsSource) -> object:
        seen.append(source.name)
        return former(source)

    monkeypatch.setattr(RecordsSource, "list", listing)
    return seen


@pytest.fixture
def driver(installation: Installation) -> Driver:
    source = {"name": "pages", "type": "records"}
    installation.add_tenant(TENANT, **FAST, sources=[source])
    driver = Driver(installation, SliceLimits(documents=2))
    driver.sync(TENANT)
    return driver


def push(driver: Driver, *numbers: int, text: str = "Words") -> None:
    catalog = driver.session.catalog
    ref = catalog.tenants.get(TENANT).ref
    for number in numbers:
        page = f"# Page {number}\n\n{text} of page {number}.\n"
        record = PushedRecord("pages", "page", str(number), page, "text/markdown", SourceMetadata())
        put_record(catalog.records, ref, record, scope="public")


def test_a_run_of_many_slices_lists_once(driver: Driver, listings: list[str]) -> None:
    listings.clear()
    push(driver, *range(7))
    done = driver.sync(TENANT)
    assert (done["added"], done["upserted"]) == (7, 7)
    assert listings == ["pages"]
    assert driver.sync(TENANT)["upserted"] == 0
    assert listings == ["pages"]


def test_what_changes_is_listed(driver: Driver, listings: list[str]) -> None:
    push(driver, 1, 2)
    driver.sync(TENANT)
    listings.clear()
    push(driver, 2, text="Other words")
    assert driver.sync(TENANT)["changed"] == 1
    catalog = driver.session.catalog
    ref = catalog.tenants.get(TENANT).ref
    [first, *_] = catalog.documents.all(TENANT)
    assert remove_record(catalog.records, ref, first.document_id, "a test")
    driver.sync(TENANT)
    assert len(catalog.documents.all(TENANT)) == 1
    assert listings == ["pages", "pages"]


def test_what_must_be_read_again_is_listed(driver: Driver, listings: list[str]) -> None:
    push(driver, 1)
    driver.sync(TENANT)
    listings.clear()
    catalog = driver.session.catalog
    catalog.documents.read_again(catalog.tenants.get(TENANT).ref)
    driver.sync(TENANT)
    assert listings == ["pages"]


def test_other_settings_list_anew(
    driver: Driver, installation: Installation, listings: list[str]
) -> None:
    push(driver, 1)
    driver.sync(TENANT)
    listings.clear()
    installation.configure(TENANT, access={"scope": "board"})
    driver.sync(TENANT)
    assert listings
    [document] = driver.session.catalog.documents.all(TENANT)
    assert document.access_scope == "board"
