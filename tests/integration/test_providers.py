"""Tenants whose embedder is a server: an independent one, and one that injects faults."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rag_assets.common.errors import WrongShape
from rag_assets.models.embedding.protocol import PROBE_TEXT
from rag_assets.pipeline.slices import find_parsed_documents
from rag_assets.storage.catalog.accounts.usage import today
from rag_assets.storage.catalog.documents.status import NEVER
from tests.e5_server import e5_server
from tests.embedding_server import EmbeddingServer, Spoilt, Status, embedding_server, tokens_of
from tests.installation import FAST, Installation

HANDBOOK = {
    "refunds.md": "# Refunds\n\nWhoever returns a purchase within thirty days is paid back.\n",
    "parking.md": "# Parking\n\nCars may be left in the courtyard overnight with a permit.\n",
    "backups.md": "# Backups\n\nThe database is copied to another site every night at two.\n",
    "holidays.md": "# Holidays\n\nAsk your manager for days off two weeks beforehand.\n",
}


@pytest.fixture(scope="module", autouse=True)
def loopback_allowed() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAG_ASSETS_PRIVATE_ENDPOINTS", "127.0.0.1")
        yield


@pytest.fixture(scope="module")
def e5() -> Iterator[str]:
    with e5_server() as url:
        yield url


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with embedding_server() as started:
        yield started


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)


def remote(server: EmbeddingServer, **options: Any) -> dict[str, Any]:
    """Return an embedder's configuration with the server, in batches of four, one at a time."""
    return {
        "provider": "openai-compatible",
        "model": "house-model",
        "dimensions": server.dimensions,
        "base_url": server.url,
        "batch_size": 4,
        "concurrency": 1,
        **options,
    }


def test_a_tenant_with_a_server_that_is_not_ours_finds_by_meaning(
    shared_installation: Installation, e5: str
) -> None:
    embedder = {
        "provider": "openai-compatible",
        "model": "e5-passage",
        "dimensions": 384,
        "base_url": e5,
        "query_prefix": "query: ",
    }
    folder = shared_installation.add_tenant("meaning", embedder=embedder)
    write(folder, HANDBOOK)
    counts = shared_installation.synced("meaning")["embeddings"]
    assert counts["embedded"] == len(HANDBOOK)
    assert counts["tokens"] > 20 * len(HANDBOOK)
    questions = {
        "Can I get my money again if I do not like it?": "files/refunds.md",
        "Where do I leave my vehicle at night?": "files/parking.md",
        "What protects us against losing data?": "files/backups.md",
        "Wie beantrage ich Urlaub?": "files/holidays.md",
    }
    for question, uri in questions.items():
        assert shared_installation.search("meaning", question, mode="knn")[0].uri == uri


def test_a_server_of_another_dimension_stops_the_tenant_before_anything_is_written(
    shared_installation: Installation, e5: str
) -> None:
    embedder = {
        "provider": "openai-compatible",
        "model": "e5-passage",
        "dimensions": 768,
        "base_url": e5,
    }
    folder = shared_installation.add_tenant("other-length", embedder=embedder)
    write(folder, HANDBOOK)
    result = shared_installation.sync("other-length")
    assert result.error is not None
    assert "vectors of 384 instead of 768 dimensions" in result.error.message
    ctx = shared_installation.context("other-length")
    documents = ctx.catalog.documents.all("other-length")
    assert {(d.status, d.retry_at) for d in documents} == {("FAILED", NEVER)}
    [row] = ctx.catalog.usage.rows(today(), "other-length")
    assert (row.used.requests, row.used.texts) == (1, 0)
    assert row.used.tokens > 0
    assert not any(name.startswith("embeddings/") for name in ctx.lake.size())
    (generation,) = ctx.catalog.generations.live(ctx.ref.id)
    owner = ctx.owner(generation)
    assert list(ctx.store.entries.stored(generation.index_name, owner)) == []
    # Set right, it is embedded as if nothing had been.
    shared_installation.configure("other-length", embedder={**embedder, "dimensions": 384})
    assert shared_installation.synced("other-length")["embeddings"]["embedded"] == len(HANDBOOK)


def test_tenants_whose_embedders_fail_do_not_disturb_the_others(
    installation: Installation, server: EmbeddingServer
) -> None:
    server.always = Status(401)
    embedders = {
        "a-refused": remote(server),
        "b-without-key": {"provider": "openai"},
        "c-well": FAST["embedder"],
    }
    for tenant, embedder in embedders.items():
        write(installation.add_tenant(tenant, embedder=embedder), HANDBOOK)
    done = installation.command("sync", "--all", "--json")
    assert done.code == 1
    by_tenant = {result["tenant"]: result for result in done.json["tenants"]}
    assert "the key for" in by_tenant["a-refused"]["error"]["message"]
    assert "no key" in by_tenant["b-without-key"]["error"]["message"]
    assert by_tenant["c-well"]["error"] is None
    assert by_tenant["c-well"]["stages"]["search_index"]["upserted"] == len(HANDBOOK)
    assert len(server.requests) == 1
    for tenant in ("a-refused", "b-without-key"):
        documents = installation.session().catalog.documents.all(tenant)
        assert {(d.status, d.retry_at) for d in documents} == {("FAILED", NEVER)}
    assert not any(text in json.dumps(done.json) for text in HANDBOOK.values())


def test_an_outage_costs_nothing_twice_and_keeps_what_was_searchable(
    shared_installation: Installation, server: EmbeddingServer
) -> None:
    folder = shared_installation.add_tenant("outage", embedder=remote(server))
    write(folder, {"former.md": "# Former\n\nThis is what it said.\n"})
    shared_installation.synced("outage")
    former = {uri: text for uri, text, _ in shared_installation.entries("outage").values()}
    write(folder, {"former.md": "# Newer\n\nThis is what it says.\n"})
    write(folder, {f"n{n:02}.md": f"# Number {n}\n\nOf eleven.\n" for n in range(11)})
    server.faults.extend([None, Status(500), None, Status(503, retry_after="7200")])
    result = shared_installation.sync("outage")
    assert result.error is not None
    assert "HTTP 503" in result.error.message
    assert result.as_json()["stages"]["embeddings"]["embedded"] == 8
    assert len(server.requests) == 1 + 4
    documents = shared_installation.session().catalog.documents.all("outage")
    waiting = {document.uri: document for document in documents if document.status == "FAILED"}
    assert len(waiting) == 4
    soonest = datetime.now(UTC) + timedelta(hours=1, minutes=59)
    assert all(d.retry_at is not None and d.retry_at > soonest for d in waiting.values())
    # What waits is not searchable, but for the former version of what had one.
    found = {uri: text for uri, text, _ in shared_installation.entries("outage").values()}
    assert found.keys() == {d.uri for d in documents} - (waiting.keys() - {"files/former.md"})
    assert (found["files/former.md"] == former["files/former.md"]) == ("files/former.md" in waiting)
    # Another process does not know that the server asked to be left alone; nor does this limit.
    shared_installation.configure("outage", embedder=remote(server, concurrency=2))
    assert shared_installation.synced("outage")["embeddings"]["embedded"] == 4
    assert server.answered.pop(PROBE_TEXT) == 1, "what waits after an outage is not sent at once"
    assert set(server.answered.values()) == {1}
    assert len(server.answered) == 1 + 12


def test_a_question_whose_answer_cannot_be_used_is_paid_for(
    shared_installation: Installation, server: EmbeddingServer
) -> None:
    folder = shared_installation.add_tenant("asks", embedder=remote(server))
    write(folder, HANDBOOK)
    shared_installation.synced("asks")
    usage = shared_installation.session().catalog.usage
    [before] = usage.rows(today(), "asks")
    server.always = Spoilt(lambda answer: {**answer, "data": []})
    with pytest.raises(WrongShape, match="for each of 1 texts; it returned 0"):
        shared_installation.search("asks", "Where do I park?")
    shared_installation.retriever.close()
    [after] = usage.rows(today(), "asks")
    assert after.used.requests - before.used.requests == 1
    assert after.used.tokens - before.used.tokens == tokens_of(["Where do I park?"])


def test_one_text_that_a_server_rejects_fails_its_document_alone(
    shared_installation: Installation, server: EmbeddingServer
) -> None:
    server.rejects = lambda text: "unspeakable" in text
    folder = shared_installation.add_tenant("rejected", embedder=remote(server))
    write(folder, {**HANDBOOK, "bad.md": "# Bad\n\nSomething unspeakable.\n"})
    stages = shared_installation.synced("rejected")
    assert stages["embeddings"]["embedded"] == len(HANDBOOK)
    documents = {
        document.uri: document
        for document in shared_installation.session().catalog.documents.all("rejected")
    }
    bad = documents.pop("files/bad.md")
    assert (bad.status, bad.retry_at) == ("FAILED", None)
    assert "rejects a text (HTTP 400)" in (bad.error_message or "")
    assert {document.status for document in documents.values()} == {"READY"}
    del server.answered[PROBE_TEXT]
    assert set(server.answered.values()) == {1}


BAD_ANSWERS = {
    "zeros": {"spoilt": [0.0] * 16},
    "not finite": {"spoilt": [float("nan")] * 16},
    "no vector": {"spoilt": None},
    "returned no vector": {"spoilt": []},
    "HTTP 500": {"rejection": 500},
    "HTTP 400": {"rejection": 400},
}


@pytest.mark.long
@pytest.mark.parametrize("reason", BAD_ANSWERS)
def test_one_text_that_a_server_fails_for_fails_its_document_alone(
    shared_installation: Installation, server: EmbeddingServer, reason: str
) -> None:
    def is_bad(text: str) -> bool:
        return "aardvark" in text

    answer: dict[str, Any] = BAD_ANSWERS[reason]
    if "spoilt" in answer:
        server.spoils, server.spoilt = is_bad, answer["spoilt"]
    else:
        server.rejects, server.rejection = is_bad, answer["rejection"]
    tenant = f"bad-{list(BAD_ANSWERS).index(reason)}"
    folder = shared_installation.add_tenant(tenant, embedder=remote(server, batch_size=64))
    parts = [f"## Part {n}\n\n" + f"Words of part {n} follow here. " * 150 for n in range(5)]
    parts[2] += "An aardvark digs."
    write(folder, {"bad.md": "\n\n".join(parts)})
    write(folder, {f"n{n:02}.md": f"# Number {n}\n\nOf forty-six.\n" for n in range(46)})
    assert shared_installation.synced(tenant)["search_index"]["pending"] == 0
    ctx = shared_installation.context(tenant)
    documents = {document.uri: document for document in ctx.catalog.documents.all(tenant)}
    bad = documents.pop("files/bad.md")
    assert {document.status for document in documents.values()} == {"READY"}
    assert (bad.status, bad.error_kind, bad.retry_at) == ("FAILED", "text-rejected", None)
    [parsed] = find_parsed_documents(ctx, [bad])
    chunks = ctx.lake.chunk_sets({parsed.chunk_set_key})[parsed.chunk_set_key].chunks
    [place] = [number for number, chunk in enumerate(chunks, start=1) if is_bad(chunk.text)]
    assert (bad.error_message or "").startswith(f"chunk {place} of {len(chunks)}: ")
    assert reason in (bad.error_message or "")
    # What was paid for is kept, and no text but the bad one is paid for twice.
    hashes = {chunk.build_embedding_text(parsed.title): chunk.text_sha256 for chunk in chunks}
    answered = {hashes[text] for text in server.answered if text in hashes and not is_bad(text)}
    assert not ctx.lake.find_missing_vectors(ctx.embedder.embedder_id, answered)
    paid = {t: count for t, count in server.answered.items() if t != PROBE_TEXT and not is_bad(t)}
    assert set(paid.values()) == {1}
    before = len(server.requests)
    assert shared_installation.sync(tenant).error is None
    assert len(server.requests) == before
    (folder / "bad.md").write_text("\n\n".join(parts).replace("aardvark", "badger"))
    left = len(set(hashes.values()) - answered)
    assert shared_installation.synced(tenant)["embeddings"]["embedded"] == left
    assert set(ctx.catalog.documents.count_by_status(tenant)) == {"READY"}


def without_vectors(answer: dict[str, Any]) -> dict[str, Any]:
    return {**answer, "data": [{**row, "embedding": [0.0] * 16} for row in answer["data"]]}


def test_a_server_that_fails_for_every_text_costs_a_retry_one_harmless_text(
    shared_installation: Installation, server: EmbeddingServer
) -> None:
    folder = shared_installation.add_tenant("every-text", embedder=remote(server, batch_size=64))
    write(folder, {f"n{n:02}.md": f"# Number {n}\n\nOf thirty.\n" for n in range(30)})
    server.always = Spoilt(without_vectors)
    assert shared_installation.sync("every-text").error is not None
    assert [len(texts) for texts in server.requests] == [30, 1]
    assert shared_installation.sync("every-text").error is not None
    assert server.requests[2:] == [[PROBE_TEXT]]
    catalog = shared_installation.session().catalog
    assert {d.status for d in catalog.documents.all("every-text")} == {"FAILED"}
    assert all(d.retry_at is not None for d in catalog.documents.all("every-text"))
    server.always = None
    assert shared_installation.synced("every-text")["embeddings"]["embedded"] == 30
