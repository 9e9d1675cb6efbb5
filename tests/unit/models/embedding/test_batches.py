"""Which texts share a call, and which are never sent: too long, too expensive, or pointless."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.common.errors import CapReached, InputRejected, ProviderRefused
from rag_assets.models.embedding.batches import Batch, CallPace, EmbedItem, pack_batches
from rag_assets.models.embedding.bulk import EmbedOutcome, embed_all
from rag_assets.models.embedding.protocol import PROBE_TEXT, Answer, CallLimits, Charge, Vectors
from rag_assets.models.providers.local import DeterministicEmbedder


class Limited(DeterministicEmbedder):
    """An embedder that counts one token per character, and records its calls."""

    def __init__(self, limits: CallLimits) -> None:
        super().__init__(dimensions=8)
        self._limits = limits
        self.calls: list[list[str]] = []
        self.closed = 0

    @property
    def limits(self) -> CallLimits:
        return self._limits

    async def embed(self, texts: Sequence[str], **options: Any) -> Answer:
        self.calls.append(list(texts))
        return await super().embed(texts, **options)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        return [len(text) for text in texts]

    async def close(self) -> None:
        self.closed += 1


class Purse:
    """A budget of so many tokens."""

    def __init__(self, tokens: int) -> None:
        self.left = tokens

    def reserve(self, tokens: int) -> None:
        if tokens > self.left:
            raise CapReached("nothing is left")
        self.left -= tokens

    def settle(self, reserved: int, charge: Charge) -> None:
        self.left += reserved - charge.tokens


def run(embedder: Limited, texts: Sequence[str], budget: Purse | None = None) -> EmbedOutcome:
    items = [EmbedItem(f"key-{n}", text) for n, text in enumerate(texts)]

    def keep(keys: Sequence[str], vectors: Vectors) -> None:
        assert len(keys) == len(vectors)

    return asyncio.run(embed_all(embedder, items, keep=keep, budget=budget))


@given(
    counts=st.lists(st.integers(0, 50), max_size=300),
    texts=st.integers(1, 200),
    tokens=st.none() | st.integers(50, 400),
)
def test_batches_keep_the_order_and_the_limits(counts: list[int], texts: int, tokens: int | None):
    items = [EmbedItem(str(n), "text") for n in range(len(counts))]
    batches = list(pack_batches(items, counts, CallLimits(texts, 1, tokens)))
    assert [item for batch in batches for item in batch.items] == items
    assert [count for batch in batches for count in batch.counts] == counts
    assert all(1 <= len(batch.items) <= min(texts, 100) for batch in batches)
    assert tokens is None or all(batch.tokens <= tokens for batch in batches)


@given(size=st.integers(2, 100))
def test_halves_are_the_whole_and_neither_is_empty(size: int):
    batch = Batch(tuple(EmbedItem(str(n), "") for n in range(size)), tuple(range(size)))
    left, right = batch.split_in_half()
    assert left.items + right.items == batch.items
    assert left.tokens + right.tokens == batch.tokens
    assert left.items
    assert right.items


def test_a_text_over_the_limit_is_reported_and_never_sent():
    embedder = Limited(CallLimits(texts=10, concurrency=2, tokens=100, input_tokens=20))
    outcome = run(embedder, ["short", "x" * 21, "also short"])
    assert embedder.calls == [["short", "also short"]]
    assert outcome.embedded == 2
    assert "21 tokens exceeds the 20" in outcome.rejected["key-1"]


def test_a_call_takes_no_more_tokens_than_the_embedder_reads_at_once():
    embedder = Limited(CallLimits(texts=10, concurrency=1, tokens=10))
    run(embedder, ["a" * 6, "b" * 4, "c", "d" * 9])
    assert embedder.calls == [["a" * 6, "b" * 4], ["c", "d" * 9]]


def test_a_spent_budget_stops_what_is_left_and_keeps_what_is_done():
    purse = Purse(11)
    embedder = Limited(CallLimits(texts=1, concurrency=1))
    outcome = run(embedder, ["a" * 5, "b" * 5, "c" * 5], purse)
    assert (outcome.embedded, outcome.remaining) == (2, 1)
    assert outcome.outage is not None
    assert outcome.outage.message == "nothing is left"
    assert len(embedder.calls) == outcome.requests == 2


def test_the_unused_reservation_of_a_failed_call_is_released():
    class Rejecting(Limited):
        async def embed(self, texts: Sequence[str], **options: Any) -> Answer:
            if "bad" in texts:
                raise InputRejected("refused")
            return await super().embed(texts, **options)

    purse = Purse(200)
    outcome = run(Rejecting(CallLimits(texts=10, concurrency=1)), ["good", "bad"], purse)
    assert dict(outcome.rejected) == {"key-1": "refused"}
    # One probe after the batch was refused, and one for the verdict on a single text.
    assert purse.left == 200 - 2 * len(PROBE_TEXT) - len("good")


@pytest.mark.parametrize("count", [1, 64])
def test_an_embedder_that_rejects_everything_is_found_out_by_one_probe(count: int):
    class Wrong(Limited):
        async def embed(self, texts: Sequence[str], **options: Any) -> Answer:
            self.calls.append(list(texts))
            raise InputRejected("no such model")

    embedder = Wrong(CallLimits(texts=64, concurrency=1))
    outcome = run(embedder, [f"text {n}" for n in range(count)])
    assert len(embedder.calls) == 2
    assert isinstance(outcome.outage, ProviderRefused)
    assert "rejects every text: no such model" in outcome.outage.message
    assert outcome.rejected == {}
    assert outcome.remaining == count


def test_the_embedder_is_closed_however_it_ends():
    fine, wrong = (Limited(CallLimits(texts=1, concurrency=1)) for _ in range(2))
    run(fine, ["text"])

    def keep(keys: Sequence[str], vectors: Vectors) -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        asyncio.run(embed_all(wrong, [EmbedItem("key", "text")], keep=keep))
    assert (fine.closed, wrong.closed) == (1, 1)


def test_a_run_of_several_calls_begins_with_a_small_one_and_grows_to_the_limits():
    limits = CallLimits(texts=100, concurrency=3)
    pace = CallPace(limits, 250)
    assert (pace.texts, pace.calls) == (16, 1)
    pace.record(16, 0.1)
    pace.record(100, 0.5)
    assert (pace.texts, pace.calls) == (100, 3)


def test_calls_to_a_slow_embedder_are_no_larger_than_it_does_in_two_seconds():
    pace = CallPace(CallLimits(texts=100, concurrency=3), 250)
    pace.record(16, 8.0)
    assert (pace.texts, pace.calls) == (4, 1)
    pace.record(4, 100.0)
    assert pace.texts == 1


@pytest.mark.parametrize(("texts", "count"), [(100, 100), (10, 1_000)])
def test_short_runs_and_small_calls_are_made_at_once(texts: int, count: int):
    pace = CallPace(CallLimits(texts=texts, concurrency=3), count)
    assert (pace.texts, pace.calls) == (texts, 3)
