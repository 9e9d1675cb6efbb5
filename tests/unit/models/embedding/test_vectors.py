import asyncio

import numpy as np
import pytest

from rag_assets.models.config import EmbedderConfig
from rag_assets.models.embedding.vectors import PROBES, compute_distances, embed_probes
from rag_assets.models.factory import build_embedder, get_embedder_id


def test_probes_have_a_vector_each() -> None:
    answer = asyncio.run(embed_probes(build_embedder(EmbedderConfig(provider="deterministic"))))
    assert answer.vectors.shape == (len(PROBES), 384)
    assert answer.tokens > 0


def test_distances_are_those_of_directions() -> None:
    before = np.array([[1, 0], [1, 0], [0, 1]], dtype=np.float32)
    now = np.array([[1, 0], [0, 1], [0, -1]], dtype=np.float32)
    assert compute_distances(before, now) == (0.0, 1.0, 2.0)


def test_a_revision_keeps_vectors_apart_and_changes_none() -> None:
    plain = EmbedderConfig(provider="deterministic")
    revised = EmbedderConfig(provider="deterministic", revision="2026-11-21")
    assert get_embedder_id(revised) == f"{get_embedder_id(plain)}~2026-11-21"
    assert build_embedder(revised).embedder_id == get_embedder_id(revised)
    first, second = (asyncio.run(embed_probes(build_embedder(c))) for c in (plain, revised))
    assert np.array_equal(first.vectors, second.vectors)


def test_a_revision_is_a_word() -> None:
    with pytest.raises(ValueError, match="revision"):
        EmbedderConfig(revision="two words")
