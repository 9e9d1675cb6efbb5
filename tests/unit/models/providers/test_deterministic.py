from __future__ import annotations

import asyncio
import time

import numpy as np
import pytest

from rag_assets.common.errors import InputRejected
from rag_assets.models.providers.local import DeterministicEmbedder


def test_vectors_are_unit_and_depend_on_the_text_alone():
    embedder = DeterministicEmbedder(dimensions=1536)
    texts = [f"text {n}" for n in range(50)] + ["\ud800"]
    vectors = asyncio.run(embedder.embed(texts)).vectors
    assert vectors.shape == (51, 1536)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    again = asyncio.run(DeterministicEmbedder(dimensions=1536).embed(texts[::-1])).vectors
    np.testing.assert_array_equal(again[::-1], vectors)
    cosine = vectors @ vectors.T
    assert np.abs(cosine - np.eye(51)).max() < 0.2


def test_vectors_stay_the_same_from_version_to_version():
    vector = asyncio.run(DeterministicEmbedder(dimensions=4).embed(["pinned"])).vectors[0]
    np.testing.assert_allclose(vector, [-0.37588, -0.007032, 0.660321, 0.650109], atol=1e-6)


def test_a_call_takes_the_configured_time():
    embedder = DeterministicEmbedder(seconds_per_text=0.02)
    started = time.perf_counter()
    asyncio.run(embedder.embed(["a"] * 5))
    assert time.perf_counter() - started >= 0.1


def test_empty_texts_are_rejected_as_by_real_embedders():
    with pytest.raises(InputRejected, match="text 2 of 2"):
        asyncio.run(DeterministicEmbedder().embed(["a", "  "]))
