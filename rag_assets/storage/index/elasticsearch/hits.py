"""Between entries and the JSON that Elasticsearch takes and gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from elasticsearch.helpers import pack_dense_vector

from rag_assets.storage.index import fields
from rag_assets.storage.index.model import (
    Candidate,
    Entry,
    Owner,
    RankingRequest,
    ScannedEntry,
    StoredEntry,
    entry_id,
)


def upsert_action(index_name: str, entry: Entry) -> dict[str, Any]:
    """The bulk action that writes an entry, its vector packed."""
    return {
        "_op_type": "index",
        "_index": index_name,
        "_id": entry.id,
        "routing": entry.owner.tenant,
        "_source": {
            **fields.entry_source(entry),
            "vector": pack_dense_vector(np.ascontiguousarray(entry.vector, dtype=np.float32)),
        },
    }


def stored(owner: Owner, hit: Mapping[str, Any], cosine: float | None = None) -> StoredEntry:
    """A hit that brings its stored fields along."""
    return fields.stored(owner, hit["_id"], hit["_source"], cosine)


def candidate(owner: Owner, hit: Mapping[str, Any], score: float) -> Candidate:
    """A hit that brings the fields along that searches.PLACING names."""
    values = hit["fields"]
    [document_id], [index_key], [ordinal] = (
        values[name] for name in ("document_id", "index_key", "ordinal")
    )
    # A build of an earlier schema has no other key. A uri is left out that is too long to sort by.
    [text_key] = values.get("text_key") or values["text_sha256"]
    [uri] = values.get("uri", [""])
    id_ = entry_id(owner, document_id, index_key, ordinal)
    return Candidate(id_, document_id, index_key, score, uri, text_key)


def ranking(
    owner: Owner, request: RankingRequest, found: Iterable[Mapping[str, Any]]
) -> list[Candidate]:
    """The hits of one search as what was wanted, best first."""
    score = _words_score if isinstance(request.by, str) else cosine
    return ranked(candidate(owner, hit, score(hit)) for hit in found)


def cosine(hit: Mapping[str, Any]) -> float:
    """Of a hit by vector: Elasticsearch scores it as (1 + cosine) / 2."""
    return 2.0 * float(hit["_score"]) - 1.0


def _words_score(hit: Mapping[str, Any]) -> float:
    return float(hit["_score"])


def ranked(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Best first, ties broken by id."""
    return sorted(candidates, key=lambda found: (-found.score, found.id))


def scanned(hit: Mapping[str, Any], digest_key: bytes | None) -> ScannedEntry:
    """A hit of a scan as what the index really holds."""
    return fields.scanned(hit["_id"], hit["_source"], hit.get("_routing"), digest_key)
