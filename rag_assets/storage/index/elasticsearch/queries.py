"""What is asked of Elasticsearch, as the JSON that it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_assets.common.times import stamp
from rag_assets.storage.index.common_words import significant_words
from rag_assets.storage.index.elasticsearch import mapping
from rag_assets.storage.index.elasticsearch.query_limits import leading_terms, leading_words
from rag_assets.storage.index.identifiers import lexical_terms
from rag_assets.storage.index.model import EntryFilter, Owner, RankingRequest

READING: Mapping[str, Any] = {
    "_source": {"excludes": ["terms"]},
    "track_total_hits": False,
}
"""What a search brings along of each hit that is to be read."""

SCORING: Mapping[str, Any] = {"_source": False, "track_total_hits": False}
"""What it brings along of each hit of which the score is wanted."""

PLACING: Mapping[str, Any] = {
    "_source": False,
    # Of what is stored with an entry, its id included, nothing is read: this is a fifth of the
    # work of a search, and most candidates are never shown.
    "stored_fields": "_none_",
    "docvalue_fields": [
        *("document_id", "index_key", "ordinal"),
        *("uri", "text_key", "text_sha256"),
    ],
    "track_total_hits": False,
}
"""What it brings along of each hit that is only to be put in its place."""

_MOST_CANDIDATES = 10_000
"""Elasticsearch takes no more."""
_OTHER_FIELDS = 0.3
"""What fields count for in which a word stands besides the one that it fits best."""


def entries(
    owner: Owner,
    clauses: Sequence[Mapping[str, Any]] = (),
    *,
    but: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """A query for a generation's entries, without a score.

    Args:
        owner: whose entries, and of which generation.
        clauses: that each entry must match as well.
        but: a clause that none may match.
    """
    query: dict[str, Any] = {"filter": [*mapping.owned(owner), *clauses]}
    if but is not None:
        query["must_not"] = [but]
    return {"bool": query}


def ranking(owner: Owner, request: RankingRequest) -> dict[str, Any]:
    """The search for one ranking."""
    clauses = clauses_of(request.entry_filter)
    if isinstance(request.by, str):
        return _by_words(owner, request.by, request.limit, clauses)
    return _by_vector(owner, request.by, request.limit, clauses)


def scored(
    owner: Owner,
    vector: npt.NDArray[np.float32],
    clauses: Sequence[Mapping[str, Any]],
    limit: int,
) -> dict[str, Any]:
    """A search that scores by cosine what these clauses leave.

    Args:
        owner: whose entries.
        vector: to compare with.
        clauses: that each entry must match.
        limit: how many entries there are at most.
    """
    return _by_vector(owner, vector, limit, clauses)


def named(ids: Sequence[str]) -> dict[str, Any]:
    """A clause that leaves the entries of these ids."""
    return {"ids": {"values": list(ids)}}


def clauses_of(entry_filter: EntryFilter) -> list[dict[str, Any]]:
    """Filter clauses that leave what a search may find."""
    clauses: list[dict[str, Any]] = []
    if entry_filter.scopes is not None:
        clauses.append({"terms": {"access_scope": sorted(entry_filter.scopes)}})
    for name, values in (
        ("source_type", entry_filter.source_types),
        ("source", entry_filter.sources),
        ("document_id", entry_filter.documents),
        ("language", entry_filter.languages),
    ):
        if values:
            clauses.append({"terms": {name: list(values)}})
    if entry_filter.paths:
        clauses.append(_in_paths([path.rstrip("/") for path in entry_filter.paths]))
    clauses += _modified(entry_filter.modified_after, entry_filter.modified_before)
    clauses += [{"term": {"tags": tag}} for tag in entry_filter.tags]
    clauses += [
        {"term": {f"metadata.{key}": value}} for key, value in entry_filter.metadata.items()
    ]
    return clauses


def _in_paths(paths: Sequence[str]) -> dict[str, Any]:
    """Leaves what is_within one path: the files of these names, and what is in the folders."""
    folders = [{"prefix": {"uri": f"{path}/"}} for path in paths]
    either = [{"terms": {"uri": list(paths)}}, *folders]
    return {"bool": {"should": either, "minimum_should_match": 1}}


def _modified(after: datetime | None, before: datetime | None) -> list[dict[str, Any]]:
    """Leaves what was made within these times, the first included."""
    bounds = {"gte": after, "lt": before}
    given = {name: stamp(at) for name, at in bounds.items() if at is not None}
    return [{"range": {"modified_at": given}}] if given else []


def _by_vector(
    owner: Owner,
    vector: npt.NDArray[np.float32],
    limit: int,
    clauses: Sequence[Mapping[str, Any]],
) -> dict[str, Any]:
    nearest: dict[str, Any] = {
        "field": "vector",
        "query_vector": vector,
        "k": limit,
        "num_candidates": min(_MOST_CANDIDATES, max(100, 2 * limit)),
        "filter": [*mapping.owned(owner), *clauses],
    }
    return {"knn": nearest, "size": limit}


def _by_words(
    owner: Owner, query: str, limit: int, clauses: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """By words as they are written, and as the client splits them."""
    words = significant_words(query)
    prose = {
        "multi_match": {
            "query": leading_words(words),
            # What a title says is said of all its passages: it must not outweigh what one says.
            "fields": ["text", "title", "heading_path"],
            "type": "best_fields",
            "tie_breaker": _OTHER_FIELDS,
        }
    }
    found = entries(owner, clauses)
    found["bool"] |= {
        "should": [prose, {"match": {"terms": {"query": leading_terms(lexical_terms(words))}}}],
        "minimum_should_match": 1,
    }
    return {"query": found, "size": limit}
