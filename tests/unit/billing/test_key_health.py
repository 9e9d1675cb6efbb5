import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from pydantic import SecretStr
from pytest_httpserver import HTTPServer

from rag_assets.billing.key_health import KeyReportingBatchApi, KeyReportingEmbedder
from rag_assets.common.errors import (
    KeyUnreadable,
    NoProviderKey,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
    ServiceUnavailable,
)
from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.embedding.protocol import Answer
from rag_assets.models.embedding.remote import run_and_close
from rag_assets.models.factory import build_batch_api
from rag_assets.models.providers.local import DeterministicEmbedder

REFUSED = ProviderRefused("401", fault="key")


class Scripted(DeterministicEmbedder):
    """An embedder whose calls fail according to a script."""

    def __init__(self, *script: ProviderError | None) -> None:
        super().__init__()
        self._script = list(script)

    async def embed(self, texts: Sequence[str], **options: Any) -> Answer:
        if error := self._script.pop(0):
            raise error
        return await super().embed(texts, **options)


def noted_after(*script: ProviderError | None, closes: int = 1) -> list[bool]:
    noted: list[bool] = []
    embedder = KeyReportingEmbedder(Scripted(*script), noted.append)

    async def use() -> None:
        for error in script:
            if error is None:
                assert (await embedder.embed(["a"])).vectors.shape == (1, embedder.dimensions)
            else:
                with pytest.raises(type(error)):
                    await embedder.embed(["a"])
        for _ in range(closes):
            await embedder.close()

    asyncio.run(use())
    return noted


@pytest.mark.parametrize(
    ("script", "noted"),
    [
        ([None, None], [True]),
        ([REFUSED], [False]),
        ([REFUSED, None], [True]),
        ([None, REFUSED], [False]),
        ([ProviderRefused("unknown", fault="model")], []),
        ([ProviderRefused("used up", fault="quota")], []),
        ([ProviderRefused("a redirect, a certificate")], []),
        ([None, ProviderRefused("used up", fault="quota")], [True]),
        ([REFUSED, ProviderRefused("unknown", fault="model")], [False]),
        ([None, ProviderUnavailable("500")], [True]),
        ([ProviderUnavailable("500")], []),
        ([NoProviderKey("none")], []),
        ([KeyUnreadable("altered")], []),
        ([], []),
    ],
)
def test_key_health_is_noted_once(script: list[ProviderError | None], noted: list[bool]) -> None:
    assert noted_after(*script, closes=3) == noted


def test_a_note_that_cannot_be_made_is_made_later() -> None:
    tries: list[bool] = []

    def note(worked: bool) -> None:
        tries.append(worked)
        if len(tries) == 1:
            raise ServiceUnavailable("Postgres does not answer")

    async def use(embedder: KeyReportingEmbedder) -> None:
        await embedder.embed(["a"])
        await embedder.close()
        await embedder.close()
        await embedder.close()

    asyncio.run(use(KeyReportingEmbedder(DeterministicEmbedder(), note)))
    assert tries == [True, True]


@pytest.mark.parametrize(("status", "noted"), [(200, [True]), (401, [False]), (429, []), (503, [])])
def test_batches_report_on_the_key(httpserver: HTTPServer, status: int, noted: list[bool]) -> None:
    batch = {"id": "batch_1", "status": "in_progress"}
    httpserver.expect_request("/v1/batches/batch_1").respond_with_json(batch, status=status)
    outcomes: list[bool] = []

    async def look() -> None:
        config = EmbedderConfig(provider="openai", base_url=httpserver.url_for("/v1"))
        network = PrivateEndpoints.parse(f"{httpserver.host}:{httpserver.port}")
        asked = build_batch_api(config, credentials=lambda: SecretStr("sk-test"), network=network)
        api = KeyReportingBatchApi(asked, outcomes.append)
        with suppress(ProviderError):
            await run_and_close(api, api.status("batch_1"))

    asyncio.run(look())
    assert outcomes == noted
