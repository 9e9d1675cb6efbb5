"""A block marked as secret after it was indexed is not found as soon as the push returns."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import text

from tests import driving
from tests.installation import Installation
from tests.integration.systems.workspace.site import Site, workspace

WORD = "quokka"
BESIDE = "wombat"
Push = Callable[[Site], None]


@pytest.fixture
def site(shared_installation: Installation, request: pytest.FixtureRequest) -> Iterator[Site]:
    name = f"marked-{zlib.crc32(request.node.name.encode())}"
    with workspace(shared_installation, name) as made:
        made.grant("p")
        yield made


def block(*, secret: bool, block_id: str = 'b"1') -> dict[str, Any]:
    marked = {"metadata": {"secret": True}} if secret else {}
    return {"block_id": block_id, "type": "code", "text": f"{WORD} --password", **marked}


def page(*blocks: dict[str, Any], title: str = "Deploying") -> dict[str, Any]:
    beside = {"block_id": "a", "type": "paragraph", "text": f"A {BESIDE} digs."}
    return {"title": title, "blocks": [beside, *blocks]}


def put_page(site: Site) -> None:
    assert site.put("page", "p", page(block(secret=True))) == "queued"


def put_block(site: Site) -> None:
    body = {"page_uuid": "p", "block": block(secret=True)}
    assert site.put("block", 'b"1', body) == "queued"


def put_lines(site: Site) -> None:
    line = {"op": "put", "type": "block", "id": 'b"1', "page_uuid": "p"}
    title = {"op": "put", "type": "page", "id": "p", **page(title="Renamed")}
    outcomes = site.lines([title, {**line, "block": block(secret=True)}])
    assert [outcome["outcome"] for outcome in outcomes] == ["queued", "queued"]


def put_after_it_was_taken_out(site: Site) -> None:
    assert site.put("page", "p", page()) == "queued"
    assert site.put("page", "p", page(title="Anew")) == "queued"
    assert site.put("page", "p", page(block(secret=True), title="Anew")) == "queued"


def is_found(site: Site) -> bool:
    """Return whether the block's text is found by words, by vectors, or as a chunk."""
    questions = [
        *(site.hits(WORD, mode=mode) for mode in ("text", "knn", "hybrid")),
        site.hits(BESIDE),
        site.send("GET", "/rag/records/page/p").json()["chunks"],
    ]
    return any(WORD in str(answer) for answer in questions)


def kept(site: Site) -> str:
    """Return the texts of records in Postgres, including former ones."""
    queries = (
        "SELECT text FROM rag_catalog.source_records WHERE tenant = :t",
        "SELECT text FROM rag_catalog.record_texts WHERE tenant = :t",
    )
    with site.catalog.database.begin() as connection:
        found = (connection.execute(text(query), {"t": site.id}).scalars() for query in queries)
        return "\n".join(str(row) for rows in found for row in rows)


@pytest.mark.parametrize("push", [put_page, put_block, put_lines, put_after_it_was_taken_out])
def test_it_is_gone_with_the_answer_and_its_page_comes_back_without_it(
    site: Site, push: Push
) -> None:
    site.put("page", "p", page(block(secret=False)))
    site.sync()
    assert is_found(site)
    push(site)
    assert not is_found(site)
    assert WORD not in kept(site)
    assert site.send("GET", "/rag/records/page/p").json()["status"] == "queued"
    assert site.status()["queue_depth"] == 1
    site.sync()
    assert not is_found(site)
    [hit] = site.hits(BESIDE)
    assert hit["source_id"] == "p"
    assert site.status()["queue_depth"] == 0
    held = site.installation.context(site.id)
    serving = held.catalog.generations.serving(site.id)
    assert serving is not None
    entries = held.store.entries.stored(serving.index_name, held.owner(serving))
    assert WORD not in str([entry.fields for entry in entries])


@pytest.mark.parametrize("stage", ["list_documents", "parse_documents", "embed_chunks"])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_run_that_has_read_it_does_not_publish_it(
    site: Site, monkeypatch: pytest.MonkeyPatch, stage: str, is_new: bool
) -> None:
    if not is_new:
        site.put("page", "p", page())
        site.sync()
    site.put("page", "p", page(block(secret=False)))
    own = getattr(driving, stage)

    def with_a_push(*arguments: Any, **options: Any) -> Any:
        done = own(*arguments, **options)
        put_page(site)
        return done

    monkeypatch.setattr(driving, stage, with_a_push)
    site.driver.run_once(site.id)
    monkeypatch.undo()
    assert not is_found(site)
    assert WORD not in kept(site)
    site.sync()
    assert not is_found(site)
    assert len(site.hits(BESIDE)) == 1


@pytest.mark.parametrize("stage", ["list_documents", "parse_documents", "embed_chunks"])
def test_what_a_run_is_about_to_replace_is_found_no_more(
    site: Site, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    """The block was removed and the page listed, but the old entry was found until now."""
    site.put("page", "p", page(block(secret=False)))
    site.sync()
    assert site.put("page", "p", page(title="Without")) == "queued"
    own = getattr(driving, stage)
    seen = []

    def with_a_push(*arguments: Any, **options: Any) -> Any:
        done = own(*arguments, **options)
        seen.append(is_found(site))
        put_page(site)
        seen.append(is_found(site))
        return done

    monkeypatch.setattr(driving, stage, with_a_push)
    site.driver.run_once(site.id)
    monkeypatch.undo()
    assert seen == [True, False]
    assert WORD not in kept(site)
    site.sync()
    assert not is_found(site)
    assert len(site.hits(BESIDE)) == 1
    assert WORD not in kept(site)


def test_what_answers_because_its_successor_failed_is_found_no_more(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page was listed without the block, but its new version cannot be indexed."""
    site.put("page", "p", page(block(secret=False)))
    site.sync()

    def dies(*_: Any, **__: Any) -> Any:
        raise RuntimeError("it was killed")

    monkeypatch.setattr(driving, "embed_chunks", dies)
    for title in ("Without", "Without it"):
        assert site.put("page", "p", page(title=title)) == "queued"
        with pytest.raises(RuntimeError, match="it was killed"):
            site.driver.run_once(site.id)
    monkeypatch.undo()
    assert is_found(site), "its former version answers"
    put_page(site)
    assert not is_found(site)
    site.sync()
    assert len(site.hits(BESIDE)) == 1
    assert WORD not in kept(site)


def test_what_was_never_found_takes_no_page_out(site: Site) -> None:
    site.put("page", "p", page(block(secret=True)))
    site.sync()
    for title in ("One", "Two"):
        assert site.put("page", "p", page(block(secret=True), title=title)) == "queued"
        assert len(site.hits(BESIDE)) == 1, "its former version answers"
    said = {"block_id": "c", "type": "paragraph", "text": 'As in "block_id":"b\\"1".'}
    assert site.put("page", "p", page(said, block(secret=True))) == "queued"
    site.sync()
    assert site.put("page", "p", page(said, block(secret=True), title="Three")) == "queued"
    assert len(site.hits(BESIDE)) == 1, "a text that looks like a mark is none"


def test_a_push_of_what_is_stored_counts_as_well(site: Site) -> None:
    """The text kept for a run contains the block, but the record does not."""
    site.put("page", "p", page(block(secret=False)))
    site.sync()
    with site.driver.locked(site.id):
        assert site.put("page", "p", page()) == "queued"
        assert is_found(site), "it was taken out, and is found until the next run"
        assert site.put("page", "p", page(block(secret=True))) == "queued"
    assert not is_found(site)
    site.sync()
    assert not is_found(site)
    assert len(site.hits(BESIDE)) == 1
