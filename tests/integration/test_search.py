"""The hits of a search: ranked, above the threshold, and verified by the catalog."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_assets.billing.spending import Meter
from rag_assets.common.errors import IndexInconsistent, ServiceUnavailable
from rag_assets.ingest.chunking.model import build_embedding_text
from rag_assets.pipeline.listing import list_documents
from rag_assets.search import Retriever
from rag_assets.search.model import Caller, SearchAnswer, SearchRequest
from rag_assets.search.tenant_models import CachingQuestionEmbedder
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.journal.events import EventTable
from tests.back_ends import EACH_BACK_END
from tests.driving import Driver
from tests.installation import FAST, Installation
from tests.rules import shared_scanner

pytestmark = EACH_BACK_END

BODY = "The text of page {} names handleHTTPError and nothing else."


@pytest.fixture(scope="module")
def folder(shared_installation: Installation, driver: Driver) -> Path:
    folder = shared_installation.add_tenant("asked", **FAST)
    for number in range(20):
        (folder / f"{number}.md").write_text(f"# Page {number}\n\n{BODY.format(number)}\n")
    driver.sync("asked")
    return folder


def as_embedded(number: int) -> str:
    """Return a question whose vector matches only page `number`."""
    text = f"# Page {number}\n\n{BODY.format(number)}"
    return build_embedding_text(f"Page {number}", (f"Page {number}",), text)


def test_vectors_find_the_nearest(shared_installation: Installation, folder: Path) -> None:
    hits = shared_installation.search("asked", as_embedded(7), mode="knn", top_k=3)
    assert (hits[0].uri, round(hits[0].score, 2)) == ("files/7.md", 1.0)
    assert len(hits) == 3
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_a_threshold_holds_in_every_mode(shared_installation: Installation, folder: Path) -> None:
    for mode in ("knn", "text", "hybrid"):
        hits = shared_installation.search("asked", as_embedded(7), mode=mode, min_score=0.9)
        assert [hit.uri for hit in hits] == ["files/7.md"], mode


@pytest.mark.parametrize("asked", ["http error handling", "handleHTTPError", "HANDLE_HTTP_ERROR"])
def test_words_find_a_name_however_it_is_typed(
    shared_installation: Installation, folder: Path, asked: str
) -> None:
    assert len(shared_installation.search("asked", asked, mode="text", top_k=50)) == 20


def test_a_hit_cites_its_source(shared_installation: Installation, folder: Path) -> None:
    hit = shared_installation.search("asked", as_embedded(3))[0]
    source = (folder / "3.md").read_text()
    assert source[hit.start : hit.end] == hit.text
    assert (hit.title, hit.heading_path, hit.line_start) == ("Page 3", ("Page 3",), 1)


def test_nothing_but_the_catalogs_version_is_returned(
    shared_installation: Installation, driver: Driver, folder: Path
) -> None:
    """After a crash the index may contain entries of other versions; none may be a hit."""
    before = shared_installation.search("asked", as_embedded(5), mode="knn", top_k=1)
    with driver.locked("asked") as ctx:
        serving = ctx.catalog.generations.serving("asked")
        assert serving is not None
        owner, document_id = ctx.owner(serving), before[0].document_id
        [entry] = ctx.store.entries.of_documents(serving.index_name, owner, [document_id])
    import httpx2 as httpx

    server = shared_installation.environment["RAG_ASSETS_ELASTICSEARCH_URL"]
    url = f"{server}/{serving.index_name}/_doc"
    found = httpx.get(f"{url}/{entry.id}?routing=asked").json()["_source"]
    stale = {**found, "index_key": "former", "text": "Former text.", "vector": [1.0] + [0.0] * 383}
    httpx.put(f"{url}/stale?routing=asked&refresh=true", json=stale).raise_for_status()
    for mode in ("knn", "text", "hybrid"):
        hits = shared_installation.search("asked", "Former text.", mode=mode, top_k=100)
        assert "Former text." not in {hit.text for hit in hits}
    assert shared_installation.search("asked", as_embedded(5), mode="knn", top_k=1) == before
    httpx.delete(f"{url}/stale?routing=asked&refresh=true")


def test_a_deletion_holds_as_soon_as_it_is_listed(
    shared_installation: Installation, driver: Driver, folder: Path
) -> None:
    (folder / "9.md").unlink()
    with driver.locked("asked") as ctx:
        list_documents(ctx, shared_scanner())
    assert "files/9.md" in {uri for uri, _, _ in shared_installation.entries("asked").values()}
    hits = shared_installation.search("asked", as_embedded(9), mode="knn", top_k=50)
    assert "files/9.md" not in {hit.uri for hit in hits}
    assert len(hits) == 19


def test_a_question_is_embedded_as_the_entries_were(
    shared_installation: Installation, driver: Driver, folder: Path
) -> None:
    serving = driver.session.catalog.generations.serving("asked")
    assert serving is not None
    altered = replace(serving, embedder={"provider": "deterministic", "dimensions": 64})
    other = replace(altered, embedder_id="other/one@64")
    session = driver.session
    record = session.catalog.tenants.get("asked")
    tenant = session.embedders.tenant(record)
    vectors = CachingQuestionEmbedder(session.embedders, Meter(session.catalog))
    with pytest.raises(IndexInconsistent, match="was built by"):
        asyncio.run(vectors.embed(record.ref, tenant, other, "q"))


def test_a_tenant_that_was_never_synced_has_no_answer(shared_installation: Installation) -> None:
    shared_installation.add_tenant("unsynced", **FAST)
    shared_installation.session().catalog  # noqa: B018 - reads tenants.yaml
    assert shared_installation.search("unsynced", "anything") == ()


def test_a_search_leaves_two_events_without_the_credentials_of_its_question(
    shared_installation: Installation, driver: Driver, folder: Path
) -> None:
    session = driver.session
    retriever = Retriever(session.catalog, session.store, session.embedders)
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    caller = Caller(principals=("ada",), name="jwt:ada")
    asked = SearchRequest(query=f"page 3\0{token}", caller=caller, top_k=3)
    answer = retriever.search("asked", asked)
    retriever.close()
    # Other tests' searches may be written in the background meanwhile.
    [completed], [started] = (
        [
            event
            for event in session.catalog.events.latest("asked", kind=kind, limit=50)
            if event.payload["caller"] == "jwt:ada"
        ]
        for kind in ("rag_search_completed", "rag_search_started")
    )
    assert started.payload["search_id"] == completed.payload["search_id"]
    assert started.payload["caller"] == completed.payload["caller"] == "jwt:ada"
    assert started.payload["query"].startswith("page 3")
    assert token not in str(started.payload)
    assert completed.payload["chosen"] == [hit.chunk_id for hit in answer.hits]
    assert set(completed.payload["chosen"]) <= set(completed.payload["ids"])
    assert len(completed.payload["ids"]) == len(completed.payload["scores"])
    assert set(completed.payload["latency_ms"]) >= {"catalog", "embed", "search"}


def test_events_that_cannot_be_written_are_no_failure_of_the_search(
    driver: Driver, folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    session = driver.session
    retriever = Retriever(session.catalog, session.store, session.embedders)

    lost: list[Any] = []

    def fail(_table: EventTable, _ref: TenantRef, new: Sequence[Any]) -> None:
        lost.extend(new)
        raise ServiceUnavailable("Postgres does not answer")

    monkeypatch.setattr(EventTable, "append", fail)
    answer = retriever.search("asked", SearchRequest(query="page without a journal", top_k=1))
    retriever.close()
    assert len(answer.hits) == 1
    # Other tests' searches may be written in the background; they have other ids.
    [search] = {
        payload["search_id"]
        for _, _, payload in lost
        if payload.get("query") == "page without a journal"
    }
    kinds = [kind for kind, _, payload in lost if payload["search_id"] == search]
    assert kinds == ["rag_search_started", "rag_search_completed"]
    assert "events of searches could not be written: Postgres does not answer" in caplog.text


def test_a_question_is_embedded_once(
    shared_installation: Installation, driver: Driver, folder: Path
) -> None:
    session = driver.session
    retriever = Retriever(session.catalog, session.store, session.embedders)
    question = SearchRequest(query="asked twice")
    embed = CachingQuestionEmbedder._embed_question
    embedded: list[str] = []

    async def counted(self: CachingQuestionEmbedder, *arguments: Any) -> Any:
        embedded.append(arguments[-1])
        return await embed(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CachingQuestionEmbedder, "_embed_question", counted)
        first, again = (retriever.search("asked", question).hits for _ in range(2))
        retriever.search("asked", SearchRequest(query="words alone", mode="text"))
    retriever.close()
    assert first == again
    assert embedded == ["asked twice"]


def test_words_alone_need_no_vector_and_have_no_cosine(
    shared_installation: Installation, folder: Path
) -> None:
    hits = shared_installation.search("asked", "page 7", mode="text", top_k=1)
    assert (hits[0].uri, hits[0].cosine, hits[0].score_kind) == ("files/7.md", None, "words")
    [hit] = shared_installation.search("asked", "page 7", mode="text", top_k=1, min_score=-1.0)
    assert hit.cosine is not None


def test_debug_has_the_scores_behind_the_rank_of_each_hit(
    shared_installation: Installation, folder: Path
) -> None:
    answer = shared_installation.retriever.search("asked", SearchRequest(query="page 7", top_k=4))
    assert answer.debug is not None
    for hit, scores in zip(answer.hits, answer.debug.scores, strict=True):
        assert (hit.number, hit.cosine) == (scores.number, scores.cosine)
        assert (hit.score_kind, hit.score) == ("fused", scores.fused)
        assert scores.by_vector or scores.by_words
        assert 0 < scores.fused <= 2, "two rankings, each of which gives its first passage 1"
    fused = [scores.fused for scores in answer.debug.scores]
    assert fused == sorted(fused, reverse=True)


ARABIC = {
    "leave": "يحق للوالد الآخر البقاء في المنزل ثمانية أسابيع بعد ولادة الطفل.",
    "travel": "تدفع الشركة ثمن الفندق حتى مئة وعشرين يورو في الليلة الواحدة.",
    "keys": "تحفظ مفاتيح المستودع في الخزانة الحمراء بجانب المدخل الرئيسي.",
}


def test_search_question_in_a_script_that_the_embedder_does_not_read_words_alone_rank(
    shared_installation: Installation, driver: Driver
) -> None:
    folder = shared_installation.add_tenant("arabic", embedder={"provider": "local"})
    for name, text in ARABIC.items():
        (folder / f"{name}.md").write_text(f"{text}\n", encoding="utf-8")
    driver.sync("arabic")
    question = "أين تحفظ مفاتيح المستودع؟"

    def ask(query: str, mode: str) -> SearchAnswer:
        request = SearchRequest.of(query=query, mode=mode)
        return shared_installation.retriever.search("arabic", request)

    answer, by_words = ask(question, "hybrid"), ask(question, "text")
    assert [hit.uri for hit in answer.hits] == [hit.uri for hit in by_words.hits]
    assert answer.hits[0].uri == "files/keys.md"
    assert (answer.degraded, by_words.degraded) == (("vectors",), ())
    assert answer.debug is not None
    assert answer.debug.degraded == {"vectors": "script not read"}

    by_vectors = ask(question, "knn")
    assert (len(by_vectors.hits), by_vectors.degraded) == (3, ())
    assert [warning.field for warning in by_vectors.warnings] == ["mode"]
    assert "all-MiniLM-L6-v2 does not read" in by_vectors.warnings[0].problem

    in_english = ask("the keys of the store", "hybrid")
    assert in_english.degraded == ()
    assert in_english.warnings == ()
