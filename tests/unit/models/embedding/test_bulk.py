"""Bulk embedding with an embedder that fails in every way embedders fail."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.common.errors import BadVectors, InputRejected, ProviderRefused, ProviderUnavailable
from rag_assets.models.embedding.batches import EmbedItem
from rag_assets.models.embedding.bulk import EmbedOutcome, embed_all
from rag_assets.models.embedding.protocol import PROBE_TEXT, Answer, CallLimits, Vectors
from rag_assets.models.providers.local import DeterministicEmbedder


class Recorder(DeterministicEmbedder):
    """A deterministic embedder with a hook before each call, and a record of the calls."""

    def __init__(
        self,
        before: Callable[[Sequence[str]], None] = lambda texts: None,
        *,
        batch: int = 4,
        concurrent: int = 2,
        seconds_per_text: float = 0.0,
    ) -> None:
        super().__init__(dimensions=8, seconds_per_text=seconds_per_text)
        self._before = before
        self._batch = batch
        self._concurrent = concurrent
        self.calls: list[list[str]] = []
        self.under_way = 0
        self.most_under_way = 0

    @property
    def limits(self) -> CallLimits:
        return CallLimits(texts=self._batch, concurrency=self._concurrent)

    async def embed(self, texts: Sequence[str], **options: Any) -> Answer:
        self.calls.append(list(texts))
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            self._before(texts)
            answer = await super().embed(texts)
            return replace(answer, vectors=self.answer(answer.vectors))
        finally:
            self.under_way -= 1

    def answer(self, vectors: Vectors) -> Vectors:
        return vectors


class Lake:
    """Vectors in memory, with the size and time of each group."""

    def __init__(self, seconds: float = 0.0) -> None:
        self.vectors: dict[str, Vectors] = {}
        self.groups: list[int] = []
        self.threads: set[int] = set()
        self._seconds = seconds
        self._busy = threading.Lock()

    def keep(self, keys: Sequence[str], vectors: Vectors) -> None:
        assert self._busy.acquire(blocking=False), "two groups were written at once"
        try:
            time.sleep(self._seconds)
            self.threads.add(threading.get_ident())
            self.groups.append(len(keys))
            self.vectors.update(zip(keys, vectors, strict=True))
        finally:
            self._busy.release()


def items(count: int) -> list[EmbedItem]:
    return [EmbedItem(f"key-{n}", f"text {n}") for n in range(count)]


def run(embedder: DeterministicEmbedder, lake: Lake, count: int = 20, **options) -> EmbedOutcome:
    return asyncio.run(embed_all(embedder, items(count), keep=lake.keep, **options))


def expected(keys: Sequence[str]) -> Vectors:
    texts = [key.replace("key-", "text ") for key in keys]
    return asyncio.run(DeterministicEmbedder(dimensions=8).embed(texts)).vectors


def assert_holds(lake: Lake, keys: set[str]) -> None:
    assert lake.vectors.keys() == keys
    if keys:
        kept = sorted(keys)
        np.testing.assert_array_equal([lake.vectors[key] for key in kept], expected(kept))


def all_keys(count: int) -> set[str]:
    return {item.key for item in items(count)}


def fail_from(call: int, error: Exception) -> Callable[[Sequence[str]], None]:
    seen = 0

    def before(texts: Sequence[str]) -> None:
        nonlocal seen
        seen += 1
        if seen >= call:
            raise error

    return before


def refuse(text: str) -> Callable[[Sequence[str]], None]:
    def before(texts: Sequence[str]) -> None:
        if text in texts:
            raise InputRejected("refused")

    return before


def test_every_text_gets_its_own_vector_in_the_order_given():
    embedder, lake = Recorder(), Lake()
    outcome = run(embedder, lake, 22)
    assert_holds(lake, all_keys(22))
    assert (outcome.embedded, outcome.remaining, outcome.requests) == (22, 0, 6)
    assert outcome.tokens == sum(embedder.count_tokens([item.text for item in items(22)]))
    assert outcome.outage is None
    assert dict(outcome.rejected) == {}
    sent = [text for call in embedder.calls for text in call]
    assert sent == [item.text for item in items(22)]


def test_without_texts_nothing_is_called():
    embedder, lake = Recorder(), Lake()
    outcome = run(embedder, lake, 0)
    assert (outcome.embedded, outcome.requests, embedder.calls, lake.groups) == (0, 0, [], [])


def test_a_key_given_twice_is_paid_for_once():
    embedder, lake = Recorder(), Lake()
    twice = [*items(5), *items(5)]
    outcome = asyncio.run(embed_all(embedder, iter(twice), keep=lake.keep))
    assert outcome.embedded == 5
    assert sum(len(call) for call in embedder.calls) == 5


def test_batches_and_concurrency_stay_within_the_embedders_limits():
    embedder = Recorder(batch=3, concurrent=3, seconds_per_text=0.001)
    run(embedder, Lake(), 30)
    assert max(len(call) for call in embedder.calls) == 3
    assert embedder.most_under_way == 3


def test_a_batch_never_exceeds_a_hundred():
    embedder = Recorder(batch=2048)
    run(embedder, Lake(), 250)
    # The first call is a small one, which shows how long larger ones take.
    assert [len(call) for call in embedder.calls] == [16, 84, 100, 50]


def test_vectors_are_kept_in_groups_of_at_most_flush_items_off_the_event_loop():
    lake = Lake()
    run(Recorder(batch=5), lake, 42, flush_items=12, flush_seconds=60)
    assert sum(lake.groups) == 42
    assert lake.groups[:3] == [12, 12, 12]
    assert threading.get_ident() not in lake.threads


def test_vectors_are_kept_in_time_when_groups_do_not_fill():
    lake = Lake()
    embedder = Recorder(batch=1, concurrent=1, seconds_per_text=0.01)
    run(embedder, lake, 30, flush_items=512, flush_seconds=0.05)
    assert 3 <= len(lake.groups) < 30


def test_a_slow_call_does_not_hold_back_what_another_has_done():
    lake = Lake()

    class OneSlow(Recorder):
        async def embed(self, texts: Sequence[str], **options: Any) -> Answer:
            async with asyncio.timeout(10):
                while "text 0" in texts and not lake.groups:
                    await asyncio.sleep(0.01)
            return await super().embed(texts)

    # After the second batch there is nothing to send: only the clock can have it kept.
    run(OneSlow(), lake, 8, flush_seconds=0.05)
    assert lake.groups == [4, 4]
    assert_holds(lake, all_keys(8))


def test_embedding_goes_on_while_a_group_is_written():
    lake = Lake(seconds=0.2)
    during: list[int] = []

    def keep(keys: Sequence[str], vectors: Vectors) -> None:
        before = len(embedder.calls)
        lake.keep(keys, vectors)
        during.append(len(embedder.calls) - before)

    embedder = Recorder(seconds_per_text=0.002)
    asyncio.run(embed_all(embedder, items(64), keep=keep, flush_items=32))
    assert during[0] >= 4


def test_a_slow_lake_slows_the_embedding_down_instead_of_filling_memory():
    lake = Lake(seconds=0.05)
    unkept: list[int] = []
    embedder = Recorder(lambda texts: unkept.append(4 * len(embedder.calls) - len(lake.vectors)))
    run(embedder, lake, 120, flush_items=16)
    # One group in writing, one waiting, and the two calls under way.
    assert max(unkept) <= 16 + 16 + 2 * 4 + 4
    assert_holds(lake, all_keys(120))


def test_an_outage_is_reported_and_what_was_done_is_kept():
    embedder = Recorder(fail_from(4, ProviderUnavailable("gone", hint="wait")), concurrent=1)
    lake = Lake()
    outcome = run(embedder, lake, 20)
    assert_holds(lake, all_keys(12))
    assert (outcome.embedded, outcome.remaining, outcome.requests) == (12, 8, 4)
    assert outcome.outage is not None
    assert outcome.outage.hint == "wait"


def test_after_an_outage_calls_under_way_may_end():
    class FirstFails(Recorder):
        async def embed(self, texts: Sequence[str], **options: Any) -> Answer:
            answer = await super().embed(texts)
            if "text 0" in texts:
                raise ProviderUnavailable("gone")
            await asyncio.sleep(0.05)
            return answer

    embedder, lake = FirstFails(concurrent=3), Lake()
    outcome = run(embedder, lake, 40)
    assert_holds(lake, {f"key-{n}" for n in range(4, 12)})
    assert (outcome.embedded, outcome.remaining, len(embedder.calls)) == (8, 32, 3)


def test_after_the_deadline_nothing_more_is_sent():
    embedder = Recorder(batch=1, concurrent=1, seconds_per_text=0.02)
    lake = Lake()
    outcome = run(embedder, lake, 50, deadline=time.monotonic() + 0.1)
    assert 1 <= outcome.embedded <= 6
    assert outcome.remaining == 50 - outcome.embedded
    assert_holds(lake, all_keys(outcome.embedded))
    assert outcome.outage is None


def test_a_deadline_in_the_past_sends_nothing():
    embedder = Recorder()
    outcome = run(embedder, Lake(), 5, deadline=time.monotonic() - 1)
    assert (outcome.remaining, embedder.calls) == (5, [])


@pytest.mark.slow
@settings(max_examples=40)
@given(
    bad=st.sets(st.integers(0, 39), max_size=40),
    batch=st.integers(1, 17),
    concurrent=st.integers(1, 4),
)
def test_exactly_the_bad_texts_are_rejected(bad: set[int], batch: int, concurrent: int):
    def before(texts: Sequence[str]) -> None:
        if any(text in texts for text in (f"text {n}" for n in bad)):
            raise InputRejected("refused")

    embedder, lake = Recorder(before, batch=batch, concurrent=concurrent), Lake()
    outcome = run(embedder, lake, 40)
    assert dict(outcome.rejected) == {f"key-{n}": "refused" for n in bad}
    assert lake.vectors.keys() == {f"key-{n}" for n in range(40) if n not in bad}
    assert (outcome.embedded, outcome.remaining) == (40 - len(bad), 0)


def test_one_bad_text_in_a_batch_costs_two_calls_a_halving_and_two_probes():
    embedder = Recorder(refuse("text 37"), batch=64)
    outcome = run(embedder, Lake(), 64)
    # The first probe follows the batch, the second one the verdict on the single text.
    assert outcome.requests == 1 + 1 + 2 * 6 + 1


class Broken(Recorder):
    """An embedder whose third call returns spoilt vectors."""

    def __init__(self, spoil: Callable[[Vectors], Vectors]) -> None:
        super().__init__(concurrent=1)
        self._spoil = spoil

    def answer(self, vectors: Vectors) -> Vectors:
        return self._spoil(vectors) if len(self.calls) == 3 else vectors


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda v: v[:-1], "returned 3 vectors for 4 texts"),
        (lambda v: np.vstack([v, v]), "returned 8 vectors for 4 texts"),
        (lambda v: v[:, :6], "vectors of 6 instead of 8 dimensions"),
        (lambda v: v[0], "did not return a list of 4 vectors"),
        (lambda v: None, "did not return a list of 4 vectors"),
    ],
)
def test_vectors_of_another_shape_stop_the_drive_and_the_good_ones_before_are_kept(spoil, message):
    embedder, lake = Broken(spoil), Lake()
    with pytest.raises(BadVectors, match=message):
        run(embedder, lake, 40)
    assert_holds(lake, all_keys(8))
    assert len(embedder.calls) == 3


class Spoiling(Recorder):
    """An embedder that spoils the vectors of some texts, in all or so many calls."""

    def __init__(
        self, spoilt: Callable[[str], bool], value: object, *, times: int = 1_000, batch: int = 4
    ) -> None:
        super().__init__(batch=batch, concurrent=1)
        self._spoilt = spoilt
        self._value = value
        self._times = times

    async def embed(self, texts: Sequence[str], **options: Any) -> Answer:
        answer = await super().embed(texts)
        rows: list[Any] = list(answer.vectors)
        for place, text in enumerate(texts):
            if self._spoilt(text) and self._times > 0:
                rows[place] = self._value
                self._times -= 1
        return replace(answer, vectors=rows)  # type: ignore[arg-type]


BAD_VALUES = {
    "not finite": [float("nan")] * 8,
    "a vector of zeros": [0.0] * 8,
    "no vector": [],
    "6 instead of 8 dimensions": [0.5] * 6,
}


@pytest.mark.parametrize("reason", BAD_VALUES)
@pytest.mark.parametrize("batch", [1, 4, 20])
def test_a_bad_vector_among_good_ones_is_found_and_no_good_one_sent_again(reason: str, batch: int):
    embedder = Spoiling(lambda text: text == "text 5", BAD_VALUES[reason], batch=batch)
    lake = Lake()
    outcome = run(embedder, lake, 20)
    assert_holds(lake, all_keys(20) - {"key-5"})
    assert list(outcome.rejected) == ["key-5"]
    assert reason in outcome.rejected["key-5"]
    assert outcome.outage is None
    sent = Counter(text for call in embedder.calls for text in call if text != PROBE_TEXT)
    assert sent.pop("text 5") == (1 if batch == 1 else 2)
    assert set(sent.values()) == {1}


def test_a_vector_that_is_bad_once_is_asked_for_again():
    embedder = Spoiling(lambda text: text == "text 5", [0.0] * 8, times=1)
    lake = Lake()
    assert not run(embedder, lake, 20).rejected
    assert_holds(lake, all_keys(20))


def test_bad_vectors_for_every_text_are_an_outage_after_one_probe():
    embedder, lake = Spoiling(lambda text: True, [0.0] * 8), Lake()
    with pytest.raises(BadVectors, match="zeros"):
        run(embedder, lake, 40)
    assert lake.vectors == {}
    assert embedder.calls[1:] == [[PROBE_TEXT]]


def test_an_outage_that_begins_after_successes_is_not_searched_for_a_text_at_fault():
    embedder = Recorder(fail_from(4, InputRejected("refused")), batch=16, concurrent=1)
    lake = Lake()
    outcome = run(embedder, lake, 200)
    assert isinstance(outcome.outage, ProviderRefused)
    assert dict(outcome.rejected) == {}
    assert embedder.calls[4:] == [[PROBE_TEXT]]
    assert_holds(lake, all_keys(48))


def test_a_retry_during_an_outage_sends_one_harmless_text():
    embedder = Recorder(fail_from(1, ProviderUnavailable("gone")))
    outcome = run(embedder, Lake(), 200, probe_first=True)
    assert embedder.calls == [[PROBE_TEXT]]
    assert (outcome.remaining, outcome.requests) == (200, 1)
    assert outcome.outage is not None


def test_a_failing_batch_is_searched_even_beyond_the_deadline():
    def before(texts: Sequence[str]) -> None:
        time.sleep(0.02)
        if "text 2" in texts:
            raise InputRejected("refused")

    embedder, lake = Recorder(before, batch=8, concurrent=1), Lake()
    outcome = run(embedder, lake, 8, deadline=time.monotonic() + 0.01)
    assert outcome.embedded > 0
    assert outcome.remaining > 0


def test_vectors_of_another_length_are_normalised_and_unit_ones_left_bit_for_bit():
    def stretch(vectors: Vectors) -> Vectors:
        vectors[2] *= 7
        vectors.flags.writeable = False  # as an array over a provider's bytes would be
        return vectors

    lake = Lake()
    run(Broken(stretch), lake, 12)
    np.testing.assert_allclose(lake.vectors["key-10"], expected(["key-10"])[0], rtol=1e-6)
    del lake.vectors["key-10"]
    assert_holds(lake, all_keys(12) - {"key-10"})


def test_something_unforeseen_goes_on_after_keeping_what_was_done():
    lake = Lake()
    with pytest.raises(RuntimeError, match="surprise"):
        run(Recorder(fail_from(3, RuntimeError("surprise")), concurrent=1), lake)
    assert_holds(lake, all_keys(8))


def test_a_lake_that_fails_stops_the_sending_and_is_not_written_again():
    embedder = Recorder(seconds_per_text=0.002)
    writes = 0

    def keep(keys: Sequence[str], vectors: Vectors) -> None:
        nonlocal writes
        writes += 1
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        asyncio.run(embed_all(embedder, items(400), keep=keep, flush_items=8))
    assert writes == 1
    assert len(embedder.calls) < 20


def test_a_lake_that_fails_after_another_error_is_noted_on_that_error():
    def keep(keys: Sequence[str], vectors: Vectors) -> None:
        raise OSError("disk full")

    embedder = Recorder(fail_from(2, RuntimeError("surprise")), concurrent=1)
    with pytest.raises(RuntimeError, match="surprise") as caught:
        asyncio.run(embed_all(embedder, items(40), keep=keep))
    assert "disk full" in caught.value.__notes__[0]


def test_cancellation_keeps_what_was_done():
    lake = Lake(seconds=0.05)
    embedder = Recorder(batch=2, concurrent=2, seconds_per_text=0.01)

    async def cancelled() -> None:
        async with asyncio.timeout(0.2):
            await embed_all(embedder, items(400), keep=lake.keep, flush_items=8)

    with pytest.raises(TimeoutError):
        asyncio.run(cancelled())
    done = len(lake.vectors)
    assert 2 * (len(embedder.calls) - 2) <= done < 400
    assert_holds(lake, {f"key-{n}" for n in range(done)})
    assert embedder.under_way == 0


def test_an_interrupt_from_the_keyboard_keeps_what_was_done():
    lake = Lake()
    embedder = Recorder(batch=2, concurrent=1, seconds_per_text=0.01)
    main = threading.main_thread().ident
    assert main is not None
    import signal

    timer = threading.Timer(0.2, signal.pthread_kill, (main, signal.SIGINT))
    # Test workers ignore the keyboard; a command does not.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            run(embedder, lake, 400)
        timer.join()
    finally:
        signal.signal(signal.SIGINT, before)
    assert 2 * (len(embedder.calls) - 1) <= len(lake.vectors) < 400


def test_progress_counts_up_to_the_outcome():
    seen: list[int] = []
    embedder = Recorder(refuse("text 3"), seconds_per_text=0.001)
    outcome = run(embedder, Lake(), 20, progress=seen.append)
    assert len(seen) == outcome.requests - 2  # a probe is part of another call
    assert seen == sorted(seen)
    assert seen[-1] == outcome.embedded == 19


def test_texts_that_are_put_off_wait_and_those_before_them_do_not():
    embedder, lake = Recorder(batch=2, concurrent=1), Lake()
    urgent = all_keys(6)
    outcome = run(embedder, lake, 20, is_put_off=lambda key: key not in urgent)
    assert_holds(lake, urgent)
    assert (outcome.remaining, outcome.outage) == (14, None)


def test_the_first_call_is_made_even_if_its_texts_are_put_off():
    lake = Lake()
    run(Recorder(batch=2, concurrent=1), lake, 20, is_put_off=lambda key: True)
    assert_holds(lake, {"key-0", "key-1"})
