"""Passages, vectors and states of invented indexes."""

from __future__ import annotations

import numpy as np

from rag_assets.systems.agent_docs.stores import DocChunk, FileState, IndexState, normalize_rows


def chunks_of(agent_id: str, count: int) -> list[DocChunk]:
    places = [(f"f{n // 7}.md", n * 10, f"text {n}") for n in range(count)]
    return [DocChunk.from_location(agent_id, *place) for place in places]


def state_of(chunks: list[DocChunk], fingerprint: str = "f") -> IndexState:
    files = (FileState("f0.md", 10, 5, "ab", 1),)
    return IndexState(fingerprint, "e", "r", 7, files, {"x.md": "why"}, {c.id: "h" for c in chunks})


def vectors_of(count: int, seed: int = 1, dimensions: int = 8) -> np.ndarray:
    found = np.random.default_rng(seed).standard_normal((count, dimensions))
    return normalize_rows(found.astype(np.float32))
