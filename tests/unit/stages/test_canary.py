"""Asking the embedders of many tenants: the trouble of one is not another's."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from rag_assets.embedding.deterministic import DeterministicEmbedder
from rag_assets.embedding.protocol import Answer
from rag_assets.errors import EmbeddingError
from rag_assets.stages.canary import _answers


class Surprising(DeterministicEmbedder):
    """Fails as nobody foresaw, with a message that nobody vetted."""

    async def embed(self, texts: Sequence[str], **options: Any) -> Answer:
        raise OverflowError("sk-planted")


def test_an_embedder_that_fails_unforeseen_leaves_the_others_measured() -> None:
    answers = asyncio.run(_answers({"bad": Surprising(), "good": DeterministicEmbedder()}))
    assert isinstance(answers["good"], Answer)
    trouble = answers["bad"]
    assert isinstance(trouble, EmbeddingError)
    assert trouble.advice == "it failed unforeseen: OverflowError"
