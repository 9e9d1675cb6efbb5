"""Probing the embedders of many tenants: one failure affects no other tenant."""

import asyncio
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from rag_assets.common.errors import ProviderError, WrongShape
from rag_assets.models.embedding.protocol import Answer
from rag_assets.models.prices import Price
from rag_assets.models.providers.local import DeterministicEmbedder
from rag_assets.pipeline.canary import CanaryTarget, _probe_embedders, run_canary
from rag_assets.storage.catalog.accounts.usage import Usage
from rag_assets.storage.catalog.database import TenantRef


class Surprising(DeterministicEmbedder):
    """An embedder with an unexpected error whose message contains a key."""

    async def embed(self, texts: Sequence[str], **options: Any) -> Answer:
        raise OverflowError("sk-planted")


class Paid(DeterministicEmbedder):
    """An embedder that returns a wrong shape, and charges for it."""

    async def embed(self, texts: Sequence[str], **options: Any) -> Answer:
        error = WrongShape("of 7 dimensions")
        error.tokens = 500
        raise error


def test_an_answer_that_cannot_be_used_is_recorded_as_paid_for() -> None:
    added: list[Usage] = []
    catalog: Any = SimpleNamespace(
        probes=SimpleNamespace(find=lambda embedders: {}),
        usage=SimpleNamespace(add=lambda ref, provider, model, used: added.append(used)),
    )
    target = CanaryTarget(TenantRef("acme", 1), Paid(), 0.01, Price(per_million=2.0))
    [result] = run_canary(catalog, [target])
    assert result.error == "of 7 dimensions"
    assert [(used.tokens, used.requests, used.texts) for used in added] == [(500, 1, 0)]
    assert added[0].cost == pytest.approx(0.001)


def test_an_embedder_that_fails_unforeseen_leaves_the_others_measured() -> None:
    answers = asyncio.run(_probe_embedders({"bad": Surprising(), "good": DeterministicEmbedder()}))
    assert isinstance(answers["good"], Answer)
    trouble = answers["bad"]
    assert isinstance(trouble, ProviderError)
    assert trouble.advice == "the embedder failed unexpectedly: OverflowError"
