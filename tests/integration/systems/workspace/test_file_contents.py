"""Contents of files that are pushed repeatedly: each run indexes the content that it has listed."""

from __future__ import annotations

import re
import threading
import zlib
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from sqlalchemy import select

from rag_assets.common.hashing import sha256_hex
from rag_assets.ingest.sources.records import compute_record_document_id
from rag_assets.pipeline import listing
from rag_assets.pipeline.erasure import settle_open_erasures
from rag_assets.storage.blobs.store import open_blobs
from rag_assets.storage.catalog.tables import documents
from rag_assets.storage.catalog.uploads.model import record_files
from tests import driving
from tests.installation import Installation
from tests.integration.systems.workspace.site import Site, workspace
from tests.unit.ingest.parsing import pdfs

FILE = compute_record_document_id("pushed", "file", "clock")
PLACED = {"page_uuid": "p-1", "name": "clock.md"}


@pytest.fixture
def site(shared_installation: Installation, request: pytest.FixtureRequest) -> Iterator[Site]:
    name = f"files-{zlib.crc32(request.node.name.encode())}"
    with workspace(shared_installation, name) as made:
        made.grant("p-1")
        assert made.put("file", "clock", PLACED) == "queued"
        yield made


def content(number: int) -> bytes:
    return f"# Clock\n\nThe clock shows {number} pangolins.\n".encode()


def put(site: Site, number: int) -> None:
    answer = site.put_content("clock", content(number))
    assert (answer.status_code, answer.json()["outcome"]) == (202, "queued"), answer.text


def shown(site: Site) -> int | None:
    """Return the number in the content that is found."""
    hits = site.hits("clock pangolins")
    if not hits:
        return None
    [hit] = hits
    found = re.search(r"shows (\d+) pangolins", hit["text"])
    assert found is not None
    return int(found.group(1))


def blobs_of(site: Site) -> set[str]:
    ref = site.catalog.tenants.get(site.id).ref
    store = open_blobs(site.driver.session.settings)
    return {blob.sha256 for blob in store.tenant(ref.id, ref.incarnation).all()}


def kept(site: Site) -> int:
    query = select(record_files).where(record_files.c.tenant == site.id)
    with site.catalog.database.begin() as connection:
        return len(connection.execute(query).all())


def between_stages(monkeypatch: pytest.MonkeyPatch, *acts: Callable[[], Any]) -> None:
    """Call one function after the listing, and another one after parsing."""
    for name, act in zip(("list_documents", "parse_documents"), acts, strict=True):
        monkeypatch.setattr(driving, name, _and_then(getattr(driving, name), act))


def _and_then(stage: Callable[..., Any], act: Callable[[], Any]) -> Callable[..., Any]:
    def both(*arguments: Any, **options: Any) -> Any:
        found = stage(*arguments, **options)
        act()
        return found

    return both


@pytest.mark.long
def test_a_file_that_is_put_continually_is_indexed_as_each_run_listed_it(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(site, 1)
    done, failures, numbers = threading.Event(), list[BaseException](), count(2)

    def keep_putting() -> None:
        try:
            while not done.wait(0.3):
                put(site, next(numbers))
        except BaseException as error:
            failures.append(error)

    listed: list[str] = []

    def note() -> None:
        query = select(documents.c.content_sha256).where(
            documents.c.tenant == site.id, documents.c.document_id == FILE
        )
        with site.catalog.database.begin() as connection:
            listed.append(str(connection.scalar(query)))

    between_stages(monkeypatch, note, lambda: None)
    putting = threading.Thread(target=keep_putting)
    putting.start()
    indexed: list[int] = []
    try:
        while len(indexed) < 8:
            made = site.driver.run_once(site.id)
            assert made["failed"] == 0, made
            number = shown(site)
            assert number is not None
            assert sha256_hex(content(number)) == listed[-1]
            indexed.append(number)
    finally:
        done.set()
        putting.join()
    assert not failures
    last = next(numbers) - 1
    assert indexed == sorted(indexed)
    assert len({*indexed}) >= 3, "what is put meanwhile is indexed by later runs"
    site.sync()
    assert shown(site) == last
    assert blobs_of(site) == {sha256_hex(content(last))}, "no former content is left"
    assert kept(site) == 0


def test_a_run_reads_what_it_has_listed_whenever_it_is_replaced(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(site, 1)
    numbers = count(2)
    plan = listing.plan_sources

    def planned(*arguments: Any, **options: Any) -> Any:
        for one in plan(*arguments, **options):
            # The listing has read it, but is not recorded yet.
            put(site, next(numbers))
            assert site.put("file", "clock", {**PLACED, "name": f"c{next(numbers)}.md"})
            yield one

    monkeypatch.setattr(listing, "plan_sources", planned)
    between_stages(monkeypatch, *[lambda: put(site, next(numbers))] * 2)
    made = site.driver.run_once(site.id)
    assert (made["parsed"], made["failed"]) == (1, 0)
    assert shown(site) == 1
    made = site.driver.run_once(site.id)
    assert made["parsed"] == 1
    assert shown(site) == 5, "the last one that was put before the second listing"


@pytest.mark.parametrize("stage", [0, 1])
def test_what_becomes_secret_meanwhile_is_found_by_nobody(
    site: Site, monkeypatch: pytest.MonkeyPatch, stage: int
) -> None:
    put(site, 1)

    def becomes_secret() -> None:
        put(site, 2)
        secret = {**PLACED, "metadata": {"is_secret": True}}
        assert site.put("file", "clock", secret) == "secret"
        assert blobs_of(site) == set(), "with the answer"

    acts = [becomes_secret, lambda: None]
    between_stages(monkeypatch, *(acts if stage == 0 else acts[::-1]))
    site.driver.run_once(site.id)
    monkeypatch.undo()
    for _ in range(2):
        assert shown(site) is None
        assert kept(site) == 0
        site.sync()
    assert site.put("file", "clock", PLACED) == "queued"
    site.sync()
    assert shown(site) is None, "its former content is not kept"


def test_what_becomes_encrypted_meanwhile_is_left_out_by_the_next_run(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(site, 1)
    locked = pdfs.laid_out([[("body", "Pangolins")]], password="opensesame")

    def becomes_encrypted() -> None:
        assert site.put_content("clock", locked).status_code == 202

    between_stages(monkeypatch, becomes_encrypted, lambda: None)
    site.driver.run_once(site.id)
    monkeypatch.undo()
    site.sync()
    found = site.send("GET", "/rag/records/file/clock").json()
    assert (found["status"], found["chunks"]) == ("excluded", [])
    assert shown(site) is None
    assert blobs_of(site) == {sha256_hex(locked)}


def test_without_a_run_no_more_than_the_last_two_contents_are_kept(site: Site) -> None:
    assert site.send("PATCH", "/rag/settings", {"enabled": False}).status_code == 200
    for number in range(1, 7):
        put(site, number)
        assert blobs_of(site) <= {sha256_hex(content(one)) for one in (number - 1, number)}
    assert site.send("PATCH", "/rag/settings", {"enabled": True}).status_code == 200
    site.sync()
    assert shown(site) == 6
    assert blobs_of(site) == {sha256_hex(content(6))}


@pytest.mark.parametrize("door", ["record", "page", "document", "upload", "purge"])
def test_a_deletion_takes_the_contents_that_a_run_may_need(site: Site, door: str) -> None:
    put(site, 1)
    site.sync()
    with site.driver.locked(site.id):
        for number in (2, 3, 4):
            put(site, number)
        assert len(blobs_of(site)) == 4, "a run is under way, which may have listed any of them"
        path = {
            "record": "/rag/records/file/clock",
            "page": "/rag/tree/p-1",
            "document": f"/rag/documents/{FILE}",
            "upload": f"/rag/uploads/{FILE}",
            "purge": f"/rag/documents/{FILE}?purge=true",
        }[door]
        assert site.send("DELETE", path).status_code in {200, 202}
        assert kept(site) == 0
        assert shown(site) is None
        if door != "purge":
            assert blobs_of(site) == set(), "with the answer"
    with site.driver.locked(site.id) as ctx:
        settle_open_erasures(ctx)
    site.sync()
    assert blobs_of(site) == set()
    assert shown(site) is None
