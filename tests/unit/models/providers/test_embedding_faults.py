"""Every fault of a server, through the SDKs of OpenAI and Gemini: results, reports, requests."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import numpy as np
import pytest
from pydantic import SecretStr

from rag_assets.billing.spending import Cap, Spending
from rag_assets.common.errors import MalformedResponse, ProviderUnavailable
from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.embedding import batches
from rag_assets.models.embedding.batches import EmbedItem
from rag_assets.models.embedding.bulk import EmbedOutcome, embed_all
from rag_assets.models.embedding.protocol import PROBE_TEXT, Budget, Vectors
from rag_assets.models.embedding.remote import RemoteEmbedder, SdkEndpoint
from rag_assets.models.factory import build_remote_model
from rag_assets.models.prices import Price
from rag_assets.models.providers.gemini import GeminiEndpoint
from rag_assets.models.providers.openai import OpenAIEndpoint
from rag_assets.models.transport.retries import RetryPolicy, Traffic
from tests.embedding_server import (
    Cut,
    EmbeddingServer,
    Fault,
    Slow,
    Spoilt,
    Status,
    embedding_server,
    tokens_of,
)

if TYPE_CHECKING:
    from llmock.pytest_plugin import LLMock


KEY = "sk-planted-0123456789abcdef"
TEXT = "a confidential passage, number"
QUICK = RetryPolicy(
    turn=60.0, tries=4, seconds=60.0, min_seconds_left=0.05, first_pause=0.02, longest_pause=0.1
)
BATCH = 8


@pytest.fixture(autouse=True)
def calls_of_full_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send full batches after a slow call too, so that a busy machine adds no requests."""
    monkeypatch.setattr(batches, "_CALL_SECONDS", 3_600)


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with embedding_server(dimensions=768) as started:
        yield started


class Drive:
    """Bulk embedding with a server, through a provider's SDK."""

    def __init__(self, server: EmbeddingServer, provider: str) -> None:
        self.server = server
        gemini = provider == "gemini"
        self.reports_tokens = not gemini
        self._config = EmbedderConfig(
            provider=provider, model="gemini-embedding-001" if gemini else "house-model",
            dimensions=768, base_url=server.origin if gemini else server.url, batch_size=BATCH,
        )  # fmt: skip
        self.kept: dict[str, Vectors] = {}

    def embedder(self, retries: RetryPolicy = QUICK, concurrency: int = 2) -> RemoteEmbedder:
        """Return an embedder as the registry makes it, with shorter retries."""
        model = build_remote_model(self._config)
        is_gemini = self._config.provider == "gemini"
        sdk: type[SdkEndpoint[Any]] = GeminiEndpoint if is_gemini else OpenAIEndpoint
        allowed = PrivateEndpoints.parse(f"127.0.0.1:{self.server.port}")
        return RemoteEmbedder(
            partial(sdk, model, lambda: SecretStr(KEY), allowed), embedder_id=model.embedder_id,
            dimensions=model.dimensions, limits=model.limits,
            traffic=Traffic(concurrency=concurrency), document_retries=retries,
            query_retries=retries,
        )  # fmt: skip

    def run(
        self, count: int = 3 * BATCH, *, budget: Budget | None = None, **options: Any
    ) -> EmbedOutcome:
        """Embed numbered texts."""

        def keep(keys, vectors) -> None:
            self.kept.update(zip(keys, vectors, strict=True))

        items = [EmbedItem(f"key-{n}", f"{TEXT} {n}") for n in range(count)]
        return asyncio.run(embed_all(self.embedder(**options), items, keep=keep, budget=budget))


@pytest.fixture(params=["openai-compatible", "gemini"])
def drive(request: pytest.FixtureRequest, server: EmbeddingServer) -> Drive:
    return Drive(server, request.param)


def keys(count: int) -> set[str]:
    return {f"key-{n}" for n in range(count)}


def test_without_faults_everything_is_kept_with_one_request_a_batch(drive: Drive):
    outcome = drive.run()
    assert drive.kept.keys() == keys(24)
    assert (outcome.embedded, outcome.requests, outcome.retries) == (24, 3, 0)
    assert drive.server.keys == {KEY}
    again = Drive(drive.server, drive._config.provider)
    again.run(1)
    np.testing.assert_array_equal(drive.kept["key-0"], again.kept["key-0"])


def test_counted_tokens_equal_those_that_openai_charges(server: EmbeddingServer):
    outcome = Drive(server, "openai-compatible").run()
    assert outcome.tokens == tokens_of([f"{TEXT} {n}" for n in range(24)])


@pytest.mark.parametrize(
    "fault",
    [
        Status(429, retry_after="0"),
        Status(429),
        Status(408),
        Status(500),
        Status(503, retry_after="0"),
        Cut(),
        Cut(halfway=True),
    ],
    ids=str,
)
def test_passing_faults_are_got_over(drive: Drive, fault: Fault):
    drive.server.faults.extend([fault, fault])
    outcome = drive.run()
    assert drive.kept.keys() == keys(24)
    assert (outcome.outage, outcome.requests, outcome.retries) == (None, 5, 2)
    assert len(drive.server.requests) == 5
    assert set(drive.server.answered.values()) == {1}


def test_slow_answers_are_waited_for_and_too_slow_ones_are_an_outage(drive: Drive):
    drive.server.faults.append(Slow(0.3))
    assert drive.run(BATCH).requests == 1
    drive.server.always = Slow(1.0)
    outcome = drive.run(BATCH, retries=replace(QUICK, seconds=0.3))
    assert outcome.outage is not None
    assert "in time" in outcome.outage.message
    assert outcome.requests == 1


def openai_or_gemini(
    openai: Callable[[list[Any]], list[Any]], gemini: Callable[[list[Any]], list[Any]]
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    def change(answer: dict[str, Any]) -> dict[str, Any]:
        name, how = ("data", openai) if "data" in answer else ("embeddings", gemini)
        return {**answer, name: how(answer[name])}

    return change


def each(**fields: Any) -> Callable[[list[Any]], list[Any]]:
    return lambda rows: [{**row, **fields} for row in rows]


def without(field: str) -> Callable[[list[Any]], list[Any]]:
    return lambda rows: [{k: v for k, v in row.items() if k != field} for row in rows]


NAN = float("nan")
SPOILT = {
    "one vector too few": openai_or_gemini(lambda rows: rows[:-1], lambda rows: rows[:-1]),
    "one vector too many": openai_or_gemini(
        lambda rows: [*rows, {**rows[0], "index": len(rows)}], lambda rows: [*rows, rows[0]]
    ),
    "another dimension": openai_or_gemini(each(embedding=[0.1] * 384), each(values=[0.1] * 384)),
    "zeros": openai_or_gemini(each(embedding=[0.0] * 768), each(values=[0.0] * 768)),
    "not a number": openai_or_gemini(each(embedding=[NAN] * 768), each(values=[NAN] * 768)),
    "a number of 400 digits": openai_or_gemini(
        each(embedding=[10**400] * 768), each(values=[10**400] * 768)
    ),
    "no vector": openai_or_gemini(each(embedding=None), each(values=None)),
    "no field for the vector": openai_or_gemini(without("embedding"), without("values")),
    "words": openai_or_gemini(each(embedding=["a"] * 768), each(values=["a"] * 768)),
    "cut off": lambda answer: json.dumps(answer).encode()[:-40],
    "a page": lambda answer: b"<html>Welcome to the hotel's wifi</html>",
    "nothing": lambda answer: b"",
    "another object": lambda answer: {"object": "list"},
}


@pytest.mark.parametrize("how", SPOILT)
def test_a_malformed_response_stops_embedding_and_is_not_kept(drive: Drive, how: str):
    drive.run(BATCH)
    drive.server.always = Spoilt(SPOILT[how])
    with pytest.raises(MalformedResponse) as caught:
        drive.run(concurrency=1)
    # Without vectors of the right shape another text is tried, before it is called an outage.
    batches = [texts for texts in drive.server.requests if len(texts) > 1]
    assert (len(batches), len(drive.server.requests)) in {(2, 2), (2, 3)}
    assert drive.kept.keys() == keys(BATCH)
    assert_silent(caught.value)


@pytest.mark.parametrize("how", ["another dimension", "one vector too few", "zeros", "no vector"])
def test_refused_responses_are_charged_and_count_against_the_cap(server: EmbeddingServer, how: str):
    server.always, server.seconds = Spoilt(SPOILT[how]), 0.1
    price = Price(per_million=1.0)
    cap = Cap("per_day", 2.5 * BATCH * 1_100e-6, 0.0, None)
    for _ in range(4):
        budget = Spending("acme", price, [cap])
        with suppress(MalformedResponse):
            Drive(server, "openai-compatible").run(concurrency=2, budget=budget)
        cap = cap.add_spending(budget.total.cost)
    paid = price.compute_cost(sum(tokens_of(texts) for texts in server.requests))
    assert cap.spent == pytest.approx(paid)
    # Two a run; the cap of two and a half batches is broken by the second run, and stops the rest.
    assert sum(len(texts) > 1 for texts in server.requests) == 4
    assert budget.stopped_by is not None


def test_one_bad_text_among_many_is_found_and_the_others_are_kept(drive: Drive):
    drive.server.rejects = lambda text: text.endswith(" 5")
    outcome = drive.run()
    assert drive.kept.keys() == keys(24) - {"key-5"}
    assert list(outcome.rejected) == ["key-5"]
    assert TEXT not in outcome.rejected["key-5"]
    # Three batches, two for each halving of one, and a probe for each verdict that needs one: after
    # the batch and after the single text, unless another text was embedded meanwhile.
    assert outcome.requests in (9, 10, 11)
    assert len(drive.server.requests) == outcome.requests
    del drive.server.answered[PROBE_TEXT]
    assert set(drive.server.answered.values()) == {1}


@pytest.mark.parametrize("status", [400, 500, 503])
def test_a_server_that_fails_for_one_text_embeds_all_others_once(drive: Drive, status: int):
    drive.server.rejects, drive.server.rejection = lambda text: text.endswith(" 5"), status
    outcome = drive.run()
    assert outcome.outage is None
    assert drive.kept.keys() == keys(24) - {"key-5"}
    assert list(outcome.rejected) == ["key-5"]
    assert f"HTTP {status}" in outcome.rejected["key-5"]
    del drive.server.answered[PROBE_TEXT]
    assert set(drive.server.answered.values()) == {1}
    sent = Counter(text for texts in drive.server.requests for text in texts if text != PROBE_TEXT)
    # Of an error of the server's own, each request is repeated once, and that of one text twice.
    assert max(sent.values()) == (4 if status == 400 else 3 * 2 + 3)


@pytest.mark.parametrize(
    "vector",
    [[0.0] * 768, [NAN] * 768, None, [], [0.1] * 7],
    ids=["zeros", "not finite", "null", "empty", "short"],
)
def test_a_bad_vector_of_one_text_costs_that_text_twice_and_no_other(drive: Drive, vector: Any):
    server = drive.server
    server.spoils, server.spoilt = lambda text: text.endswith(" 5"), vector
    outcome = drive.run()
    assert outcome.outage is None
    assert drive.kept.keys() == keys(24) - {"key-5"}
    assert list(outcome.rejected) == ["key-5"]
    texts = {text: count for text, count in server.answered.items() if text.startswith(TEXT)}
    assert texts.pop(f"{TEXT} 5") == 2
    assert set(texts.values()) == {1}
    if drive.reports_tokens:
        assert outcome.tokens == tokens_of([text for texts in server.requests for text in texts])


def test_an_outage_costs_two_requests_with_texts_and_a_retry_none(drive: Drive):
    drive.server.always = Status(500)
    outcome = drive.run(concurrency=1)
    assert isinstance(outcome.outage, ProviderUnavailable)
    assert dict(outcome.rejected) == {}
    assert [len(texts) for texts in drive.server.requests] == [BATCH, BATCH, 1, 1]


def assert_silent(error: BaseException) -> None:
    import traceback

    told = "".join(traceback.format_exception(error)) + repr(error.__dict__)
    for secret in (KEY, TEXT, "as told", "hotel"):
        assert secret not in told


def test_a_connection_refused_is_an_outage(drive: Drive):
    with embedding_server() as gone:
        drive.server.port = gone.port
    moved = Drive(drive.server, drive._config.provider)
    outcome = moved.run(concurrency=1)
    assert isinstance(outcome.outage, ProviderUnavailable)
    assert outcome.requests == QUICK.tries


PATIENT = RetryPolicy(
    turn=30.0, tries=6, seconds=8.0, min_seconds_left=0.1, first_pause=0.2, longest_pause=0.5
)


def embed_passages(
    llmock: LLMock,
    count: int,
    *,
    batch: int = 10,
    requests_per_minute: int | None = None,
    seconds: float = 60.0,
) -> EmbedOutcome:
    """Embed texts through OpenAI's SDK, with OpenAI's own model."""
    model = build_remote_model(
        EmbedderConfig(provider="openai", base_url=llmock.base_url("openai"), batch_size=batch)
    )
    allowed = PrivateEndpoints.parse(urlsplit(llmock.url).netloc)
    embedder = RemoteEmbedder(
        partial(OpenAIEndpoint, model, lambda: SecretStr("sk-test"), allowed),
        embedder_id=model.embedder_id, dimensions=model.dimensions, limits=model.limits,
        traffic=Traffic(concurrency=4, requests_per_minute=requests_per_minute),
        document_retries=PATIENT,
    )  # fmt: skip
    items = [EmbedItem(f"key-{n}", f"passage number {n}") for n in range(count)]
    deadline = time.monotonic() + seconds
    drive = embed_all(embedder, items, keep=lambda keys, vectors: None, deadline=deadline)
    return asyncio.run(drive)


@pytest.mark.slow
def test_it_takes_rate_limits_and_outages_that_pass_as_a_client_should(llmock: LLMock):
    llmock.rate_limit(times=2, retry_after=0.4).fail(503, times=2).fail(500, times=1)
    outcome = embed_passages(llmock, 60)
    assert (outcome.embedded, outcome.outage) == (60, None)
    assert (outcome.requests, outcome.retries) == (11, 5)
    llmock.assert_resilient(strict=True)


@pytest.mark.slow
def test_a_quota_it_knows_of_is_never_run_into(llmock: LLMock):
    llmock.limits(rpm=60)
    outcome = embed_passages(llmock, 100, batch=1, requests_per_minute=60, seconds=15)
    assert (outcome.embedded, outcome.remaining) == (60, 40)
    assert (outcome.outage, outcome.retries) == (None, 0)
    assert [record.status for record in llmock.requests] == [200] * 60


@pytest.mark.slow
def test_an_unknown_quota_is_waited_for_as_long_as_the_server_requires(llmock: LLMock):
    llmock.limits(rpm=90)
    outcome = embed_passages(llmock, 91, batch=1)
    assert (outcome.embedded, outcome.outage) == (91, None)
    llmock.assert_resilient()


@pytest.mark.slow
def test_an_outage_is_reported_after_a_limited_number_of_attempts(llmock: LLMock):
    llmock.outage(status=503)
    outcome = embed_passages(llmock, 10)
    assert isinstance(outcome.outage, ProviderUnavailable)
    assert outcome.requests <= PATIENT.tries
    llmock.assert_resilient()


def test_a_request_that_is_too_long_is_halved(llmock: LLMock):
    llmock.context_overflow(times=1)
    outcome = embed_passages(llmock, 10)
    assert (outcome.embedded, dict(outcome.rejected)) == (10, {})
    assert outcome.requests == 4  # the long one, a probe, and two halves
