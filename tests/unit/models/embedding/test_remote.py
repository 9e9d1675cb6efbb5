"""An endpoint that injects faults, with limits, retries and connections for each event loop."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from rag_assets.common.errors import (
    BadVectors,
    DeadlineExceeded,
    InputRejected,
    MalformedResponse,
    NoProviderKey,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
    WrongShape,
)
from rag_assets.models.embedding.batches import EmbedItem
from rag_assets.models.embedding.bulk import embed_all
from rag_assets.models.embedding.protocol import Answer, CallLimits, Purpose, Vectors
from rag_assets.models.embedding.remote import EmbeddingReply, RemoteEmbedder
from rag_assets.models.transport.retries import (
    DOCUMENT_RETRIES,
    QUERY_RETRIES,
    RetryPolicy,
    Traffic,
)

QUICK = RetryPolicy(
    turn=2.0, tries=4, seconds=5.0, min_seconds_left=0.05, first_pause=0.01, longest_pause=0.05
)

Act = Callable[[int, Sequence[str]], "EmbeddingReply | None"]


class Service:
    """The service behind all endpoints, and its reaction to each request."""

    def __init__(self, act: Act = lambda number, texts: None) -> None:
        self._act = act
        self.requests: list[list[str]] = []
        self.purposes: list[Purpose] = []
        self.times: list[float] = []
        self.endpoints: list[FakeEndpoint] = []
        self.seconds = 0.0

    def connect(self) -> FakeEndpoint:
        self.endpoints.append(FakeEndpoint(self))
        return self.endpoints[-1]

    async def serve(self, texts: Sequence[str], purpose: Purpose) -> EmbeddingReply:
        self.requests.append(list(texts))
        self.purposes.append(purpose)
        self.times.append(time.monotonic())
        told = self._act(len(self.requests), texts)
        await asyncio.sleep(self.seconds)
        return told or EmbeddingReply([[3.0, 4.0]] * len(texts), 7 * len(texts))


class FakeEndpoint:
    """An endpoint that belongs to the event loop in which it is first used."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._loop: asyncio.AbstractEventLoop | None = None
        self.closed = 0
        self.under_way = 0

    async def request(self, texts: Sequence[str], purpose: Purpose) -> EmbeddingReply:
        self._loop = self._loop or asyncio.get_running_loop()
        assert self._loop is asyncio.get_running_loop()
        assert not self.closed
        self.under_way += 1
        try:
            return await self._service.serve(texts, purpose)
        finally:
            self.under_way -= 1

    async def close(self) -> None:
        assert not self.under_way
        assert self._loop is asyncio.get_running_loop()
        self.closed += 1


def embedder(
    service: Service,
    *,
    retries: RetryPolicy = QUICK,
    query_retries: RetryPolicy = QUICK,
    traffic: Traffic | None = None,
    limits: CallLimits | None = None,
    module: str | None = None,
) -> RemoteEmbedder:
    return RemoteEmbedder(
        service.connect, embedder_id="test/two@2", dimensions=2,
        limits=limits or CallLimits(texts=10, concurrency=1),
        traffic=traffic or Traffic(concurrency=4), document_retries=retries,
        query_retries=query_retries, module=module,
    )  # fmt: skip


def failing(times: int, error: Callable[[], Exception]) -> Act:
    def act(number: int, texts: Sequence[str]) -> EmbeddingReply | None:
        if number <= times:
            raise error()
        return None

    return act


def ask(remote: RemoteEmbedder, *texts: str, **options) -> Answer:
    async def once() -> Answer:
        try:
            return await remote.embed(texts or ("one", "two"), **options)
        finally:
            await remote.close()

    return asyncio.run(once())


def test_an_answer_has_unit_vectors_and_the_tokens_the_provider_names():
    answer = ask(embedder(Service()), "a", "b", "c")
    np.testing.assert_allclose(answer.vectors, [[0.6, 0.8]] * 3, rtol=1e-6)
    assert (answer.tokens, answer.requests) == (21, 1)


def test_tokens_that_the_provider_does_not_name_are_counted():
    service = Service(lambda number, texts: EmbeddingReply([[1.0, 0.0]] * len(texts), None))
    remote = embedder(service)
    texts = ["hello world", "antidisestablishmentarianism"]
    assert remote.count_tokens(texts) == [2, 6]
    assert ask(remote, *texts).tokens == 8


def test_passing_failures_are_tried_again_and_counted():
    service = Service(failing(3, lambda: ProviderUnavailable("away")))
    assert ask(embedder(service)).requests == 4
    assert service.requests == [["one", "two"]] * 4


def test_after_the_last_attempt_its_failure_is_raised():
    service = Service(failing(99, lambda: ProviderUnavailable("away", hint="wait")))
    with pytest.raises(ProviderUnavailable, match="away") as caught:
        ask(embedder(service))
    assert (caught.value.requests, caught.value.hint) == (4, "wait")
    assert len(service.requests) == 4


@pytest.mark.parametrize("kind", [ProviderRefused, InputRejected, MalformedResponse])
def test_a_permanent_failure_is_never_retried(kind: type[ProviderError]):
    service = Service(failing(99, lambda: kind("no")))
    with pytest.raises(kind, match="no") as caught:
        ask(embedder(service))
    assert (len(service.requests), caught.value.requests) == (1, 1)


def test_a_permanent_failure_after_transient_ones_counts_all_attempts():
    def act(number: int, texts: Sequence[str]) -> EmbeddingReply | None:
        raise ProviderUnavailable("away") if number < 3 else ProviderRefused("no")

    with pytest.raises(ProviderRefused) as caught:
        ask(embedder(Service(act)))
    assert caught.value.requests == 3


def test_something_unforeseen_is_not_tried_again():
    service = Service(failing(99, lambda: RuntimeError("surprise")))
    with pytest.raises(RuntimeError, match="surprise"):
        ask(embedder(service))
    assert len(service.requests) == 1


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ([[1.0, 0.0]], "returned 1 vectors for 2 texts"),
        ([[1.0, 0.0, 0.0]] * 2, "vectors of 3 instead of 2 dimensions"),
        ([[0.0, 0.0]] * 2, "zeros"),
        ([[float("nan"), 0.0]] * 2, "not finite"),
        ([[1.0], [1.0, 2.0]], "vector 1 of 2: .* a vector of 1 instead of 2 dimensions"),
        ([[1.0, 2.0], [1.0]], "vector 2 of 2: .* a vector of 1 instead of 2 dimensions"),
        ([[1.0, 10**400]] * 2, "vector 1 of 2: .* no vector for this text, and 1 more"),
        ([[1.0], [1.0, 2.0], [1.0]], "returned 3 vectors for 2 texts"),
    ],
)
def test_vectors_of_another_count_or_shape_are_refused(vectors, message):
    service = Service(lambda number, texts: EmbeddingReply(vectors, 1))
    with pytest.raises(BadVectors, match=message):
        ask(embedder(service))
    assert len(service.requests) == 1


@pytest.mark.parametrize(("said", "charged"), [(900, 900), (None, 2)])
def test_an_answer_that_is_not_taken_is_charged_for(said, charged):
    service = Service(lambda number, texts: EmbeddingReply([[1.0, 0.0, 0.0]] * 2, said))
    with pytest.raises(WrongShape) as caught:
        ask(embedder(service))
    assert (caught.value.tokens, caught.value.requests) == (charged, 1)


@pytest.mark.parametrize(
    ("error", "requests", "tokens"), [(NoProviderKey, 0, 0), (MalformedResponse, 1, 2)]
)
def test_only_sent_requests_are_charged(error: type[ProviderError], requests: int, tokens: int):
    with pytest.raises(error) as caught:
        ask(embedder(Service(failing(1, lambda: error("failed")))))
    assert (caught.value.requests, caught.value.tokens) == (requests, tokens)


def test_an_empty_text_is_refused_without_a_request():
    service = Service()
    with pytest.raises(InputRejected, match="text 2 of 3") as caught:
        ask(embedder(service), "a", " \n", "c")
    assert (service.requests, caught.value.requests) == ([], 0)


def test_retry_after_is_waited_for_by_every_call():
    service = Service(failing(1, lambda: ProviderUnavailable("busy", retry_after=0.3)))
    remote = embedder(service)

    async def several() -> None:
        first = asyncio.create_task(remote.embed(["first"]))
        await asyncio.sleep(0.05)
        await asyncio.gather(first, *(remote.embed([f"text {n}"]) for n in range(3)))
        await remote.close()

    asyncio.run(several())
    assert len(service.times) == 5
    assert min(service.times[1:]) - service.times[0] >= 0.3


def test_a_retry_after_beyond_the_time_limit_is_raised_at_once():
    service = Service(failing(99, lambda: ProviderUnavailable("busy", retry_after=100.0)))
    traffic = Traffic(concurrency=4)
    remote = embedder(service, traffic=traffic)
    started = time.monotonic()
    with pytest.raises(ProviderUnavailable) as caught:
        ask(remote)
    assert caught.value.retry_after == 100.0
    # Nor does anybody else ask again meanwhile.
    with pytest.raises(ProviderUnavailable, match="accepts no requests for now") as second:
        ask(remote)
    assert second.value.requests == 0
    assert second.value.retry_after == pytest.approx(100.0, abs=1)
    assert len(service.requests) == 1
    assert time.monotonic() - started < 50


def test_a_required_pause_of_hours_is_cut_so_that_repairs_take_effect():
    service = Service(failing(99, lambda: ProviderUnavailable("quota", retry_after=86_400.0)))
    traffic = Traffic(concurrency=4)
    with pytest.raises(ProviderUnavailable) as caught:
        ask(embedder(service, traffic=traffic))
    assert caught.value.retry_after == 86_400.0
    assert traffic.pause_left <= 300


def test_an_attempt_that_hangs_ends_with_the_time_limit():
    class Hanging(Service):
        async def serve(self, texts: Sequence[str], purpose: Purpose) -> EmbeddingReply:
            self.requests.append(list(texts))
            await asyncio.sleep(60)
            raise AssertionError

    service = Hanging()
    started = time.monotonic()
    with pytest.raises(ProviderUnavailable, match="did not answer in time") as caught:
        ask(embedder(service, retries=replace(QUICK, seconds=0.2)))
    assert time.monotonic() - started < 30
    assert caught.value.requests == len(service.requests) == 1


def test_a_question_has_retries_of_its_own():
    service = Service(failing(99, lambda: ProviderUnavailable("away")))
    remote = embedder(service, query_retries=replace(QUICK, tries=2))
    with pytest.raises(ProviderUnavailable):
        ask(remote, "why?", purpose="query")
    assert service.purposes == ["query"] * 2


def test_default_retries_bound_a_question_to_ten_seconds_and_a_stage_to_a_minute_more():
    assert QUERY_RETRIES.turn + QUERY_RETRIES.seconds == 10
    assert DOCUMENT_RETRIES.seconds < 70
    # A Retry-After of a minute, the most usual of all, is waited for.
    assert 60 + DOCUMENT_RETRIES.min_seconds_left < DOCUMENT_RETRIES.seconds


def test_pauses_grow_are_bounded_and_begin_at_zero():
    policy = replace(DOCUMENT_RETRIES, first_pause=1.0, longest_pause=8.0)
    for attempts, bound in ((1, 1.0), (2, 2.0), (4, 8.0), (9, 8.0)):
        drawn = [policy.draw_pause(attempts) for _ in range(400)]
        assert 0 <= min(drawn) < 0.1 * bound
        assert 0.9 * bound < max(drawn) <= bound


def test_no_call_is_larger_than_an_eighth_of_what_a_minute_allows():
    traffic = Traffic(concurrency=3, tokens_per_minute=500)
    limits = CallLimits(texts=10, concurrency=9, tokens=8_000, input_tokens=300)
    assert embedder(Service(), traffic=traffic, limits=limits).limits == CallLimits(
        texts=10, concurrency=3, tokens=62, input_tokens=300
    )
    unlimited = replace(limits, tokens=None)
    assert embedder(Service(), traffic=traffic, limits=unlimited).limits.tokens == 62
    assert embedder(Service(), limits=limits).limits.tokens == 8_000


def test_a_turn_after_the_deadline_is_not_waited_for():
    traffic = Traffic(concurrency=4, requests_per_minute=1)
    remote = embedder(Service(), traffic=traffic, retries=replace(QUICK, turn=40.0))
    ask(remote)
    started = time.monotonic()
    with pytest.raises(DeadlineExceeded):
        ask(remote, deadline=started + 30)
    with pytest.raises(ProviderUnavailable, match="has reached its request limits") as caught:
        ask(remote)
    assert caught.value.requests == 0
    assert time.monotonic() - started < 15


def items(count: int) -> list[EmbedItem]:
    return [EmbedItem(f"key-{n}", f"text {n}") for n in range(count)]


def test_a_drive_leaves_over_what_its_deadline_does_not_let_it_send_and_calls_it_no_outage():
    service = Service()
    traffic = Traffic(concurrency=2, requests_per_minute=3)
    remote = embedder(service, traffic=traffic, retries=replace(QUICK, turn=70))
    kept: list[str] = []
    started = time.monotonic()

    def keep(keys: Sequence[str], vectors: Vectors) -> None:
        kept.extend(keys)

    outcome = asyncio.run(embed_all(remote, items(100), keep=keep, deadline=started + 40))
    assert time.monotonic() - started < 30
    assert (outcome.embedded, outcome.remaining, outcome.outage) == (30, 70, None)
    assert (outcome.requests, outcome.retries, len(service.requests)) == (3, 0, 3)
    assert kept == [item.key for item in items(30)]


def test_a_drive_has_its_first_turn_even_beyond_its_deadline_so_that_there_is_progress():
    traffic = Traffic(concurrency=2, requests_per_minute=1, window=0.3)
    remote = embedder(Service(), traffic=traffic)
    ask(remote)
    soon = time.monotonic() + 0.1
    outcome = asyncio.run(embed_all(remote, items(30), keep=lambda *_: None, deadline=soon))
    assert (outcome.embedded, outcome.remaining, outcome.outage) == (10, 20, None)


def test_each_loop_has_connections_of_its_own_closed_in_it():
    service = Service()
    remote = embedder(service)
    for _ in range(3):
        asyncio.run(embed_all(remote, items(20), keep=lambda keys, vectors: None))
    assert [endpoint.closed for endpoint in service.endpoints] == [1, 1, 1]


def test_connections_stay_open_for_a_drive_that_is_still_under_way():
    service = Service()
    service.seconds = 0.05
    remote = embedder(service)

    async def both() -> None:
        slow = asyncio.create_task(remote.embed(["slow"]))
        await asyncio.sleep(0.01)
        assert service.endpoints[0].under_way
        await remote.close()
        assert not service.endpoints[0].closed
        await slow
        assert service.endpoints[0].closed == 1
        await remote.embed(["again"])
        await remote.close()

    asyncio.run(both())
    assert [endpoint.closed for endpoint in service.endpoints] == [1, 1]


def test_closing_what_was_never_opened_opens_nothing():
    service = Service()
    asyncio.run(embedder(service).close())
    assert service.endpoints == []


def test_a_request_that_is_put_off_beyond_the_deadline_is_left_for_later():
    service = Service(failing(99, lambda: ProviderUnavailable("busy", retry_after=50.0)))
    started = time.monotonic()
    with pytest.raises(DeadlineExceeded) as caught:
        ask(embedder(service, retries=replace(QUICK, seconds=90.0)), deadline=started + 30)
    assert time.monotonic() - started < 30
    assert (caught.value.requests, len(service.requests)) == (1, 1)


def test_the_import_of_an_sdk_counts_for_no_time_limit_and_holds_up_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sdk_of_a_test.py").write_text("import time\ntime.sleep(0.3)\n")
    monkeypatch.syspath_prepend(tmp_path)

    def act(number: int, texts: Sequence[str]) -> EmbeddingReply | None:
        import_module("sdk_of_a_test")
        return None

    hasty = RetryPolicy(turn=0.1, tries=1, seconds=0.1, min_seconds_left=0.01)
    remote = embedder(Service(act), query_retries=hasty, module="sdk_of_a_test")

    async def embed() -> tuple[Answer, int]:
        call = asyncio.create_task(remote.embed(["valve"], purpose="query"))
        turns = 0
        while not call.done():
            await asyncio.sleep(0.02)
            turns += 1
        answer = await call
        await remote.close()
        return answer, turns

    answer, turns = asyncio.run(embed())
    assert len(answer.vectors) == 1
    assert turns > 3
