"""An independent server that injects faults and judges its clients' behaviour."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from pydantic import SecretStr

from rag_assets.common.errors import ProviderRefused, ProviderUnavailable
from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.embedding.batches import EmbedItem
from rag_assets.models.embedding.bulk import EmbedOutcome, embed_all
from rag_assets.models.embedding.remote import RemoteEmbedder
from rag_assets.models.factory import build_remote_model
from rag_assets.models.providers.openai import OpenAIEndpoint
from rag_assets.models.transport.retries import RetryPolicy, Traffic

if TYPE_CHECKING:
    from llmock.pytest_plugin import LLMock

QUICK = RetryPolicy(turn=30.0, tries=6, seconds=8.0, least=0.1, first_pause=0.2, longest_pause=0.5)


def drive(
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
        embedder_id=model.embedder_id,
        dimensions=model.dimensions,
        limits=model.limits,
        traffic=Traffic(concurrency=4, requests_per_minute=requests_per_minute),
        document_retries=QUICK,
    )
    items = [EmbedItem(f"key-{n}", f"passage number {n}") for n in range(count)]
    deadline = time.monotonic() + seconds
    return asyncio.run(
        embed_all(embedder, items, keep=lambda keys, vectors: None, deadline=deadline)
    )


@pytest.mark.slow
def test_it_takes_rate_limits_and_outages_that_pass_as_a_client_should(llmock: LLMock):
    llmock.rate_limit(times=2, retry_after=0.4).fail(503, times=2).fail(500, times=1)
    outcome = drive(llmock, 60)
    assert (outcome.embedded, outcome.outage) == (60, None)
    assert (outcome.requests, outcome.retries) == (11, 5)
    llmock.assert_resilient(strict=True)


@pytest.mark.slow
def test_a_quota_it_knows_of_is_never_run_into(llmock: LLMock):
    llmock.limits(rpm=60)
    outcome = drive(llmock, 100, batch=1, requests_per_minute=60, seconds=15)
    assert (outcome.embedded, outcome.remaining) == (60, 40)
    assert (outcome.outage, outcome.retries) == (None, 0)
    assert [record.status for record in llmock.requests] == [200] * 60


@pytest.mark.slow
def test_an_unknown_quota_is_waited_for_as_long_as_the_server_requires(llmock: LLMock):
    llmock.limits(rpm=90)
    outcome = drive(llmock, 91, batch=1)
    assert (outcome.embedded, outcome.outage) == (91, None)
    llmock.assert_resilient()


@pytest.mark.slow
def test_an_outage_is_reported_after_a_limited_number_of_attempts(llmock: LLMock):
    llmock.outage(status=503)
    outcome = drive(llmock, 10)
    assert isinstance(outcome.outage, ProviderUnavailable)
    assert outcome.requests <= QUICK.tries
    llmock.assert_resilient()


def test_permanent_failures_are_not_retried(llmock: LLMock):
    llmock.fail(401, times=None)
    outcome = drive(llmock, 10)
    assert isinstance(outcome.outage, ProviderRefused)
    assert len(llmock.requests) == outcome.requests == 1
    llmock.assert_resilient(strict=True)


def test_a_request_that_is_too_long_is_halved(llmock: LLMock):
    llmock.context_overflow(times=1)
    outcome = drive(llmock, 10)
    assert (outcome.embedded, dict(outcome.rejected)) == (10, {})
    assert outcome.requests == 4  # the long one, a probe, and two halves
