from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from rag_assets.accounts.noting import NotingEmbedder
from rag_assets.embedding.deterministic import DeterministicEmbedder
from rag_assets.embedding.protocol import Answer, Purpose
from rag_assets.errors import (
    EmbedderRefused,
    EmbedderUnavailable,
    EmbeddingError,
    KeyUnreadable,
    NoProviderKey,
    ServiceUnavailable,
)

REFUSED = EmbedderRefused("401", fault="key")


class Scripted(DeterministicEmbedder):
    """Fails as it is told, call by call."""

    def __init__(self, *script: EmbeddingError | None) -> None:
        super().__init__()
        self._script = list(script)

    async def embed(
        self,
        texts: Sequence[str],
        *,
        purpose: Purpose = "document",
        deadline: float | None = None,
    ) -> Answer:
        if error := self._script.pop(0):
            raise error
        return await super().embed(texts, purpose=purpose, deadline=deadline)


def noted_after(*script: EmbeddingError | None, closes: int = 1) -> list[bool]:
    noted: list[bool] = []
    embedder = NotingEmbedder(Scripted(*script), noted.append)

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
        ([EmbedderRefused("unknown", fault="model")], []),
        ([EmbedderRefused("used up", fault="quota")], []),
        ([EmbedderRefused("a redirect, a certificate")], []),
        ([None, EmbedderRefused("used up", fault="quota")], [True]),
        ([REFUSED, EmbedderRefused("unknown", fault="model")], [False]),
        ([None, EmbedderUnavailable("500")], [True]),
        ([EmbedderUnavailable("500")], []),
        ([NoProviderKey("none")], []),
        ([KeyUnreadable("altered")], []),
        ([], []),
    ],
)
def test_what_became_of_the_key_is_noted_once(
    script: list[EmbeddingError | None], noted: list[bool]
) -> None:
    assert noted_after(*script, closes=3) == noted


def test_a_note_that_cannot_be_made_is_made_later() -> None:
    tries: list[bool] = []

    def note(worked: bool) -> None:
        tries.append(worked)
        if len(tries) == 1:
            raise ServiceUnavailable("Postgres does not answer")

    async def use(embedder: NotingEmbedder) -> None:
        await embedder.embed(["a"])
        await embedder.close()
        await embedder.close()
        await embedder.close()

    asyncio.run(use(NotingEmbedder(DeterministicEmbedder(), note)))
    assert tries == [True, True]
