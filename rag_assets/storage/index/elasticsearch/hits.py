"""Conversion of entries to Elasticsearch's JSON, and of its hits to entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from elasticsearch.helpers import pack_dense_vector

from rag_assets.storage.index import fields
from rag_assets.storage.index.elasticsearch.queries import SYMBOL_FIELD
from rag_assets.storage.index.model import (
    Candidate,
    Entry,
    EntryVector,
    Owner,
    PassageVector,
    RankingRequest,
    ScannedEntry,
    StoredEntry,
    entry_ids,
)


def upsert_action(index_name: str, entry: Entry) -> dict[str, Any]:
    """Return the bulk action that writes an entry, with its vector packed."""
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


def parse_stored_hit(
    owner: Owner, hit: Mapping[str, Any], cosine: float | None = None
) -> StoredEntry:
    """Return the entry of a hit with stored fields."""
    return fields.build_stored_entry(owner, hit["_id"], hit["_source"], cosine)


def entry_vector(owner: Owner, hit: Mapping[str, Any]) -> EntryVector:
    """Return the vector of a hit with all its stored fields."""
    stored = dict(hit["_source"])
    numbers = stored.pop("vector", None)
    vector = None if numbers is None else np.asarray(numbers, dtype=np.float32)
    return fields.entry_vector(owner, hit["_id"], stored, vector)


def passage_vector(hit: Mapping[str, Any]) -> PassageVector:
    """Return the vector of a hit with a vector; see queries.VECTOR_OPTIONS."""
    found = hit["_source"]
    return PassageVector(found["chunk_id"], np.asarray(found["vector"], dtype=np.float32))


def candidate(
    id_of: Callable[[str, str, int], str], hit: Mapping[str, Any], score: float
) -> Candidate:
    """Return the candidate of a hit with the doc values that queries.candidate_options() names.

    Args:
        id_of: makes ids; see entry_ids().
        hit: a hit of Elasticsearch.
        score: the candidate's score.
    """
    values = hit["fields"]
    [document_id], [index_key], [ordinal] = (
        values["document_id"],
        values["index_key"],
        values["ordinal"],
    )
    id_ = id_of(document_id, index_key, ordinal)
    # Generations of earlier schemas have no text_key, and an altered text_key is never needed. A
    # URI of more than 8,191 characters has no doc value.
    [text_key] = values.get("text_key") or values.get("text_sha256") or [id_]
    [uri] = values.get("uri", [""])
    within = tuple(sorted(map(int, values.get("within", ()))))
    [symbol] = values.get(SYMBOL_FIELD, [""])
    return Candidate(
        *(id_, document_id, index_key, score, uri, text_key, int(ordinal), within),
        symbol=symbol,
        matched=len(hit.get("matched_queries", ())),
    )


def ranking(
    owner: Owner, request: RankingRequest, found: Iterable[Mapping[str, Any]]
) -> list[Candidate]:
    """Return the candidates of one ranking's hits, best first."""
    score = _words_score if isinstance(request.by, str) else cosine
    id_of = entry_ids(owner)
    return sort_candidates(candidate(id_of, hit, score(hit)) for hit in found)


def cosine(hit: Mapping[str, Any]) -> float:
    """Return the cosine of a hit by vector, which Elasticsearch scores as (1 + cosine) / 2."""
    return 2.0 * float(hit["_score"]) - 1.0


def _words_score(hit: Mapping[str, Any]) -> float:
    # The last digits of float sums depend on the order in which the index adds the values.
    return float(f"{hit['_score']:.6g}")


def sort_candidates(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return candidates sorted best first, ties broken by id."""
    return sorted(candidates, key=lambda found: (-found.score, found.id))


def parse_scanned_hit(hit: Mapping[str, Any], digest_key: bytes | None) -> ScannedEntry:
    """Return the entry of a hit of a scan."""
    return fields.build_scanned_entry(hit["_id"], hit["_source"], hit.get("_routing"), digest_key)
