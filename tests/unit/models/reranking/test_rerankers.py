import asyncio
import json
import math
import time
from collections.abc import Sequence
from threading import Event
from typing import Any

import pytest
from pydantic import SecretStr
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from rag_assets.common.errors import (
    ConfigurationError,
    KeyUnreadable,
    NoProviderKey,
    RagAssetsError,
    RerankFailed,
)
from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.config import RerankConfig
from rag_assets.models.factory import build_reranker
from rag_assets.models.reranking.rerankers import (
    FAILURES,
    OPEN_SECONDS,
    CircuitBreakerReranker,
    extract_scores,
)
from rag_assets.runtime.liveness import wait_until

LOOPBACK = PrivateEndpoints.parse("127.0.0.1/32")
PASSAGES = ["first passage", "second passage", "third passage"]
RESULTS = [
    {"index": 2, "relevance_score": 0.9},
    {"index": 0, "relevance_score": 0.5},
    {"index": 1, "relevance_score": 0.1},
]
SAID = "sk-secret-that-a-server-echoes"


def no_key() -> SecretStr:
    raise NoProviderKey("none")


def ask(
    server: HTTPServer,
    *,
    seconds: float = 5,
    credentials: Any = no_key,
    allowed: PrivateEndpoints = LOOPBACK,
    **config: Any,
) -> list[float]:
    settings = RerankConfig(url=server.url_for("/v2/rerank"), **config)
    endpoint = build_reranker(settings, credentials=credentials, network=allowed)

    async def run() -> list[float]:
        try:
            return await endpoint.score_passages("a question", PASSAGES, seconds=seconds)
        finally:
            await endpoint.close()

    return asyncio.run(run())


def answers(server: HTTPServer, answer: object, status: int = 200) -> None:
    server.expect_request("/v2/rerank", method="POST").respond_with_json(answer, status)


@pytest.mark.parametrize(
    "answer",
    [
        {"id": "x", "results": RESULTS, "meta": {}},
        {"object": "list", "data": RESULTS, "model": "rerank-2.5"},
        [{"index": r["index"], "score": r["relevance_score"]} for r in RESULTS],
    ],
    ids=["cohere", "voyage", "text-embeddings-inference"],
)
def test_scores_come_in_the_order_of_the_passages(httpserver: HTTPServer, answer: object) -> None:
    answers(httpserver, answer)
    assert ask(httpserver) == [0.5, 0.1, 0.9]


def test_a_request_holds_what_every_server_takes_and_no_more(httpserver: HTTPServer) -> None:
    answers(httpserver, {"results": RESULTS})
    ask(httpserver, model="rerank-v3.5", api_key="$KEY", credentials=lambda: SecretStr("sk-1"))
    ask(httpserver, takes="texts")
    (first, _), (second, _) = httpserver.log
    body = {"query": "a question", "documents": PASSAGES}
    assert first.get_json() == {"model": "rerank-v3.5", **body}
    assert first.headers["authorization"] == "Bearer sk-1"
    assert second.get_json() == {"query": "a question", "texts": PASSAGES}
    assert "authorization" not in second.headers


@pytest.mark.parametrize(
    ("status", "fault"),
    [(401, "refused"), (404, "refused"), (422, "refused"), (302, "refused"),
     (429, "unavailable"), (500, "unavailable")],
)  # fmt: skip
def test_a_refusal_is_named_and_not_quoted(httpserver: HTTPServer, status: int, fault: str) -> None:
    elsewhere = {"Location": httpserver.url_for("/elsewhere")}
    httpserver.expect_request("/v2/rerank").respond_with_data(SAID, status, elsewhere)
    with pytest.raises(RerankFailed, match=f"HTTP {status}") as caught:
        ask(httpserver)
    assert caught.value.fault == fault
    assert SAID not in caught.value.advice
    assert caught.value.__context__ is None
    assert [request.path for request, _ in httpserver.log] == ["/v2/rerank"]


@pytest.mark.parametrize("body", [b"<html>" + SAID.encode(), b"[" * 100_000, b'{"results": 1e999}'])
def test_what_is_no_answer_is_malformed(httpserver: HTTPServer, body: bytes) -> None:
    httpserver.expect_request("/v2/rerank").respond_with_data(body)
    with pytest.raises(RerankFailed, match="malformed") as caught:
        ask(httpserver)
    assert caught.value.fault == "malformed"
    assert SAID not in caught.value.advice
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    "results",
    [
        RESULTS[:2],
        [*RESULTS, RESULTS[0]],
        [*RESULTS[:2], {"index": 3, "relevance_score": 0.1}],
        [*RESULTS[:2], {"index": 0, "relevance_score": 0.1}],
        [*RESULTS[:2], {"index": True, "relevance_score": 0.1}],
        [*RESULTS[:2], {"index": -2, "relevance_score": 0.1}],
        [*RESULTS[:2], {"index": 1, "relevance_score": "0.1"}],
        [*RESULTS[:2], {"index": 1, "relevance_score": math.nan}],
        [*RESULTS[:2], {"index": 1, "relevance_score": math.inf}],
        [*RESULTS[:2], {"index": 1}],
        [*RESULTS[:2], 7],
        {"index": 0},
        None,
    ],
)
def test_every_passage_has_one_finite_score_or_none_counts(results: object) -> None:
    assert extract_scores({"results": RESULTS}, 3) == [0.5, 0.1, 0.9]
    with pytest.raises(ValueError, match=r"results|result|index|score"):
        extract_scores({"results": results}, 3)


def test_a_slow_server_costs_no_more_than_its_time(httpserver: HTTPServer) -> None:
    released = Event()

    def slow(request: Request) -> Response:
        released.wait(20)
        return Response(json.dumps({"results": RESULTS}))

    httpserver.expect_request("/v2/rerank").respond_with_handler(slow)
    started = time.monotonic()
    with pytest.raises(RerankFailed) as caught:
        ask(httpserver, seconds=2)  # time for a busy machine to send it
    took_seconds = time.monotonic() - started
    released.set()
    assert wait_until(lambda: len(httpserver.log) == 1, 30), "it logs its late answer in this test"
    assert took_seconds < 10
    assert caught.value.fault == "late"


def test_a_server_inside_is_not_reached_unless_the_operator_lets_it(httpserver: HTTPServer) -> None:
    with pytest.raises(RerankFailed, match=r"not encrypted") as caught:
        ask(httpserver, allowed=PrivateEndpoints())
    assert caught.value.fault == "refused"
    assert httpserver.log == []


def test_nothing_is_sent_without_the_key_that_is_named(httpserver: HTTPServer) -> None:
    def unreadable() -> SecretStr:
        raise KeyUnreadable("another master key")

    with pytest.raises(RerankFailed, match="none"):
        ask(httpserver, api_key="$KEY")
    with pytest.raises(RerankFailed, match="another master key"):
        ask(httpserver, credentials=unreadable)
    assert httpserver.log == []


def test_a_server_that_is_gone_is_unavailable(httpserver: HTTPServer) -> None:
    config = RerankConfig(url="http://127.0.0.1:1/rerank")
    endpoint = build_reranker(config, credentials=no_key, network=LOOPBACK)
    with pytest.raises(RerankFailed) as caught:
        asyncio.run(endpoint.score_passages("a question", PASSAGES, seconds=5))
    assert caught.value.fault == "unavailable"


LATE = RerankFailed("late", "late")


class Scripted:
    """A reranker that fails according to a script."""

    reranker_id = "scripted"

    def __init__(self) -> None:
        self.failure: RagAssetsError | None = None
        self.asked = 0

    async def score_passages(
        self, question: str, passages: Sequence[str], *, seconds: float
    ) -> list[float]:
        self.asked += 1
        await asyncio.sleep(0)
        if self.failure is not None:
            raise self.failure
        return [1.0] * len(passages)

    async def close(self) -> None:
        """Do nothing."""


class Clock:
    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def fault_of(reranker: CircuitBreakerReranker) -> str | None:
    """Return why there are no scores; None if there are."""
    try:
        asyncio.run(reranker.score_passages("q", ["p"], seconds=1))
    except RerankFailed as error:
        return error.fault
    return None


def test_it_rests_after_failures_in_a_row_and_one_tries_it_again() -> None:
    scripted, clock = Scripted(), Clock()
    reranker = CircuitBreakerReranker(scripted, clock)
    scripted.failure = LATE
    faults = [fault_of(reranker) for _ in range(FAILURES + 2)]
    assert faults == ["late"] * FAILURES + ["resting"] * 2
    assert scripted.asked == FAILURES
    clock.now += OPEN_SECONDS
    assert [fault_of(reranker) for _ in range(3)] == ["late", "resting", "resting"]
    clock.now += OPEN_SECONDS
    scripted.failure = None
    assert [fault_of(reranker) for _ in range(3)] == [None] * 3
    scripted.failure = LATE
    assert fault_of(reranker) == "late"


def test_a_success_in_between_starts_the_count_anew() -> None:
    scripted = Scripted()
    reranker = CircuitBreakerReranker(scripted, Clock())
    for _ in range(5):
        scripted.failure = LATE
        assert [fault_of(reranker) for _ in range(FAILURES - 1)] == ["late"] * (FAILURES - 1)
        scripted.failure = None
        assert fault_of(reranker) is None


def test_while_one_tries_it_again_the_others_go_on_without() -> None:
    scripted, clock = Scripted(), Clock()
    reranker = CircuitBreakerReranker(scripted, clock)
    scripted.failure = LATE
    for _ in range(FAILURES):
        fault_of(reranker)
    clock.now += OPEN_SECONDS
    scripted.failure = None

    async def at_once() -> list[object]:
        calls = [reranker.score_passages("q", ["p"], seconds=1) for _ in range(5)]
        return await asyncio.gather(*calls, return_exceptions=True)

    outcomes = asyncio.run(at_once())
    assert outcomes[0] == [1.0]
    assert [getattr(outcome, "fault", None) for outcome in outcomes[1:]] == ["resting"] * 4


def test_a_model_that_cannot_be_used_is_a_failure_like_others() -> None:
    scripted = Scripted()
    scripted.failure = ConfigurationError("no such folder", hint="make it")
    with pytest.raises(RerankFailed, match="no such folder") as caught:
        asyncio.run(CircuitBreakerReranker(scripted).score_passages("q", ["p"], seconds=1))
    assert (caught.value.fault, caught.value.hint) == ("not usable", "make it")
