"""What is asked of Elasticsearch, as the JSON that it takes."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_assets.indexing import mapping
from rag_assets.indexing.identifiers import lexical_terms
from rag_assets.indexing.model import Owner

_MOST_CANDIDATES = 10_000
"""Elasticsearch takes no more."""


def entries(
    owner: Owner,
    narrowed: Sequence[Mapping[str, Any]] = (),
    *,
    but: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A query for a generation's entries, without a score.

    Args:
        owner: whose entries, and of which generation.
        narrowed: clauses that each entry must match as well.
        but: a clause that none may match.
    """
    query: dict[str, Any] = {"filter": [*mapping.owned(owner), *narrowed]}
    if but is not None:
        query["must_not"] = [but]
    return {"bool": query}


def knn(
    owner: Owner,
    vector: npt.NDArray[np.float32],
    *,
    limit: int,
    min_cosine: float | None,
    ids: Sequence[str] | None,
    scopes: Collection[str] | None,
) -> dict[str, Any]:
    """A search for the nearest vectors; for the arguments see VectorStore.knn."""
    filters = [*mapping.owned(owner), *_scoped(scopes)]
    if ids is not None:
        filters.append({"ids": {"values": list(ids)}})
    nearest: dict[str, Any] = {
        "field": "vector",
        "query_vector": [float(value) for value in vector],
        "k": limit,
        "num_candidates": min(_MOST_CANDIDATES, max(100, 2 * limit)),
        "filter": filters,
    }
    if min_cosine is not None:
        nearest["similarity"] = min_cosine
    return {"knn": nearest, "size": limit}


def text(owner: Owner, query: str, *, limit: int, scopes: Collection[str] | None) -> dict[str, Any]:
    """A search by words, as they are written and as the client splits them."""
    prose = {
        "multi_match": {
            "query": query,
            "fields": ["text", "title^2", "heading_path^2"],
            "type": "most_fields",
        }
    }
    found = entries(owner, _scoped(scopes))
    found["bool"] |= {
        "should": [prose, {"match": {"terms": {"query": lexical_terms(query)}}}],
        "minimum_should_match": 1,
    }
    return {"query": found, "size": limit}


def _scoped(scopes: Collection[str] | None) -> list[dict[str, Any]]:
    return [] if scopes is None else [{"terms": {"access_scope": sorted(scopes)}}]
