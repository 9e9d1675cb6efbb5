"""Tenants whose builds are made, judged and moved; the fixtures are in conftest.py."""

from __future__ import annotations

from typing import Any

from rag_assets.storage.catalog.builds.generations import Generation
from tests.driving import Driver
from tests.embedding_server import EmbeddingServer
from tests.installation import Installation

DOCUMENTS = 5


def prose(name: str) -> str:
    """Return a document that the default chunker leaves whole, and CHUNKED splits."""
    lines = " ".join(f"Sentence {n} of {name} is about topic {n}." for n in range(12))
    return f"# About {name}\n\n{lines}\n"


def found(installation: Installation, tenant: str, words: str) -> set[str]:
    """Return the URIs of the hits that contain these words."""
    hits = installation.search(tenant, words, mode="text", top_k=20)
    return {hit.uri for hit in hits if words in hit.text}


def states(driver: Driver, tenant: str) -> dict[int, str]:
    return {g.number: g.state for g in driver.session.catalog.generations.live(tenant)}


def serving(driver: Driver, tenant: str) -> Generation:
    generation = driver.session.catalog.generations.serving(tenant)
    assert generation is not None
    return generation


def remote(server: EmbeddingServer) -> dict[str, Any]:
    """Return the configuration of an embedder that uses the server."""
    return {
        "provider": "openai-compatible",
        "base_url": server.url,
        "model": "test-model",
        "dimensions": server.dimensions,
        "price": {"per_million": 0},
    }
