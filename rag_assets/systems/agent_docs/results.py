"""Results as the tool returns them and as programs read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rag_assets.retrieval.contexts import results_text
from rag_assets.systems.agent_docs.stores import SearchResult


def as_text(results: Sequence[SearchResult]) -> str:
    """Passages between markers; a sentence if there are none."""
    return results_text(
        (number, one.score, one.chunk.source_path, one.chunk.content)
        for number, one in enumerate(results, start=1)
    )


def as_record(result: SearchResult) -> dict[str, Any]:
    """A passage with its score, for JSON."""
    return asdict(result.chunk) | {"score": result.score}
