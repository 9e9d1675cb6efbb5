"""Reranking changes the order but not the access, and no search fails because of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from rag_assets.billing.key_ring import KeyRing
from rag_assets.common.errors import NoReranker
from rag_assets.models.reranking.rerankers import FAILURES
from rag_assets.pipeline.tenancy import reconcile_tenants
from rag_assets.runtime.liveness import wait_until
from rag_assets.search import Retriever
from rag_assets.search.model import SearchAnswer, SearchRequest
from tests.back_ends import EACH_BACK_END
from tests.cross_encoders import cross_encoder, encoder_of_tokens
from tests.driving import Driver
from tests.installation import FAST, Installation

pytestmark = EACH_BACK_END

WORDS = ("river", "table", "green", "music", "winter", "paper")
QUESTION = " ".join(WORDS)

Ask = Callable[..., SearchAnswer]


@pytest.fixture(scope="module")
def shared(shared_installation: Installation, driver: Driver) -> Installation:
    """Create documents in which number n has n words of the question; half are for the board."""
    root = shared_installation.home.parent / "sources" / "reread"
    sources = []
    for remainder, scope in enumerate(("public", "board")):
        folder = root / scope
        folder.mkdir(parents=True)
        for number in range(remainder, len(WORDS) + 1, 2):
            (folder / f"{number}.md").write_text(f"A {scope} {' '.join(WORDS[:number])}.\n")
        sources.append({"name": scope, "root": str(folder), "scope": scope})
    shared_installation.add_tenant("reread", root=root, **{**FAST, "sources": sources})
    driver.sync("reread")
    return shared_installation


@pytest.fixture
def ask(shared: Installation, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Ask]]:
    """Return a function that configures the tenant's reranker and returns a search."""
    monkeypatch.setenv("RAG_ASSETS_PRIVATE_ENDPOINTS", "localhost")
    monkeypatch.setenv("RERANK_KEY", "sk-of-reread")
    opened: list[Retriever] = []

    def configured(**rerank: Any) -> Ask:
        shared.configure("reread", retrieval={"mode": "knn", "rerank": rerank or None})
        session = shared.session()
        retriever = Retriever(session.catalog, session.store, session.embedders)
        opened.append(retriever)

        def search(query: str = QUESTION, **asked: Any) -> SearchAnswer:
            return retriever.search("reread", SearchRequest.of(query=query, **asked))

        return search

    yield configured
    for retriever in opened:
        retriever.close()


def numbers(answer: SearchAnswer) -> list[int]:
    return [int(Path(hit.uri).stem) for hit in answer.hits]


def answering(request: Request) -> Response:
    """Score passages by their length, as a rerank server responds."""
    documents = request.get_json()["documents"]
    results = [{"index": n, "relevance_score": len(d)} for n, d in enumerate(documents)]
    return Response(json.dumps({"results": results[::-1]}))


def test_a_model_orders_what_was_found_and_changes_no_score(
    ask: Callable[..., Ask], tmp_path: Path
) -> None:
    search = ask(folder=str(cross_encoder(tmp_path)), first=3, seconds=20)
    board = {"principals": ["group:board"]}
    found = search(rerank=False, top_k=3)
    answer = search(top_k=2)
    assert numbers(answer) == sorted(numbers(found), reverse=True)[:2]
    cosines = {hit.uri: hit.cosine for hit in found.hits}
    assert [hit.cosine for hit in answer.hits] == [cosines[hit.uri] for hit in answer.hits]
    assert answer.debug is not None
    assert [scores.rerank for scores in answer.debug.scores] == numbers(answer)
    assert [hit.score for hit in answer.hits] == numbers(answer)
    assert {hit.score_kind for hit in answer.hits} == {"reranker"}
    every = [hit.score for hit in search(top_k=10).hits if hit.score is not None]
    assert len(every) > 3, "more than the reranker scored"
    assert every == sorted(every, reverse=True)
    assert answer.degraded == ()
    assert {"rerank", "verify"} <= set(answer.debug.latency_ms)
    # What a threshold leaves out is not read again, what lies where it should ranks higher, and
    # behind the first come the others as they were found.
    between = sum(hit.cosine or 0 for hit in found.hits[:2]) / 2
    assert numbers(search(min_score=between)) == numbers(found)[:1]
    assert numbers(search(must_include_paths=["public/2.md"], caller=board))[0] == 2
    every = search(rerank=False, caller=board, top_k=20)
    reread = search(caller=board, top_k=20)
    assert numbers(reread) == sorted(numbers(every)[:3], reverse=True) + numbers(every)[3:]


def test_a_server_is_sent_only_what_the_caller_may_read_and_what_is_revoked_is_not_shown(
    ask: Callable[..., Ask], httpserver: HTTPServer, driver: Driver
) -> None:
    catalog = driver.session.catalog
    ref = catalog.tenants.get("reread").ref

    def revoking(request: Request) -> Response:
        catalog.access.revoke(ref, "board", ["ada"])
        return answering(request)

    httpserver.expect_request("/rerank").respond_with_handler(revoking)
    search = ask(url=httpserver.url_for("/rerank"), api_key="$RERANK_KEY", seconds=20)
    assert numbers(search(top_k=10)) == [6, 4, 2, 0]
    catalog.access.grant(ref, "board", ["ada"])
    assert numbers(search(top_k=10, caller={"principals": ["ada"]})) == [6, 4, 2, 0]
    (first, _), (second, _) = httpserver.log
    assert first.headers["authorization"] == "Bearer sk-of-reread"
    [key] = KeyRing(catalog, driver.session.settings).entries("reread")
    assert (key.provider, key.shown, key.state) == ("rerank", "$RERANK_KEY", "set")
    assert not [text for text in first.get_json()["documents"] if "board" in text]
    assert [text for text in second.get_json()["documents"] if "board" in text]


def test_a_server_that_fails_or_is_late_costs_the_order_and_little_time(
    ask: Callable[..., Ask],
) -> None:
    released = Event()

    def slow(request: Request) -> Response:
        released.wait(20)
        return answering(request)

    def timed() -> tuple[SearchAnswer, float]:
        started = time.monotonic()
        return search(), time.monotonic() - started

    with HTTPServer(threaded=True) as server:
        for _ in range(FAILURES - 1):
            server.expect_ordered_request("/rerank").respond_with_handler(slow)
        server.expect_ordered_request("/rerank").respond_with_data("as told", status=500)
        search = ask(url=server.url_for("/rerank"), seconds=0.4)
        expected = numbers(search(rerank=False))
        answers = [timed() for _ in range(FAILURES + 2)]
        released.set()
        assert wait_until(lambda: len(server.log) == FAILURES, 30)
    faults = [answer.debug.degraded["rerank"] for answer, _ in answers if answer.debug]
    assert faults == [*["late"] * (FAILURES - 1), "unavailable", "resting", "resting"]
    assert [numbers(answer) for answer, _ in answers] == [expected] * len(answers)
    assert {answer.degraded for answer, _ in answers} == {("rerank",)}
    assert max(took for _, took in answers) < 10


def problems_of(installation: Installation) -> list[str]:
    """Reconcile the catalog with tenants.yaml; return the problems."""
    session = installation.session()
    found = reconcile_tenants(session.catalog, session.settings, session.identity)
    return [problem.message for problem in found.problems]


def test_reranking_without_a_reranker_is_an_error(
    ask: Callable[..., Ask], shared: Installation, tmp_path: Path
) -> None:
    search = ask()
    assert len(search(rerank=False).hits) == 4
    with pytest.raises(NoReranker, match="'reread' has no reranker"):
        search(rerank=True)
    search = ask(folder=str(cross_encoder(tmp_path / "model")), by_default=False, seconds=20)
    assert numbers(search()) != [6, 4, 2, 0]
    assert numbers(search(rerank=True)) == [6, 4, 2, 0]
    retrieval = {"rerank": {"folder": str(encoder_of_tokens(tmp_path / "vectors"))}}
    shared.configure("reread", retrieval=retrieval)
    [problem] = problems_of(shared)
    assert "not one score per pair" in problem


def test_the_shipped_model_reranks_questions_in_english(ask: Callable[..., Ask]) -> None:
    search = ask(model="ms-marco-minilm-l12", seconds=30, blend=1)
    best = "What is the public document about a river, a table and the colour green?"
    answer = search(best)
    assert answer.debug is not None
    scores = [one.rerank for one in answer.debug.scores]
    assert all(score is not None for score in scores)
    assert scores == sorted(scores, reverse=True)
    assert numbers(answer) != numbers(search(best, rerank=False))
    for other in ("Wovon handelt das öffentliche Dokument über Flüsse?", "عن ماذا تتحدث الوثيقة؟"):
        kept = search(other, rerank=True)
        assert kept.debug is not None
        assert {one.rerank for one in kept.debug.scores} == {None}
        assert numbers(kept) == numbers(search(other, rerank=False))
        assert (kept.degraded, "rerank" in kept.debug.latency_ms) == ((), False)


def test_a_tenant_that_reads_code_cannot_have_the_shipped_model(shared: Installation) -> None:
    shared.configure("reread", retrieval=None)
    retrieval = {"rerank": {"model": "ms-marco-minilm-l12"}}
    shared.add_tenant("of-code", **{**FAST, "chunker": {"chunker": "code"}, "retrieval": retrieval})
    [problem] = problems_of(shared)
    assert "'of-code' reads source code" in problem
    shared.configure("of-code", retrieval=None)
