"""Between entries and the JSON that Elasticsearch takes and gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from elasticsearch.helpers import pack_dense_vector

from rag_assets.storage.index import fields as stored_fields
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
            **stored_fields.entry_source(entry),
            "vector": pack_dense_vector(np.ascontiguousarray(entry.vector, dtype=np.float32)),
        },
    }


def stored(owner: Owner, hit: Mapping[str, Any], cosine: float | None = None) -> StoredEntry:
    """A hit that brings its stored fields along, verified where the generation has a key."""
    fields = hit["_source"]
    return StoredEntry(hit["_id"], fields["index_key"], fields, _is_intact(owner, hit), cosine)


def _is_intact(owner: Owner, hit: Mapping[str, Any]) -> bool:
    """Whether a hit is what was written, in the very place where it was written."""
    fields = hit["_source"]
    if owner.digest_key is None:
        return True
    if not stored_fields.is_intact(fields, owner.digest_key):
        return False
    # A true copy of another entry has a true digest.
    place = fields["document_id"], fields["index_key"], fields["ordinal"]
    return bool(hit["_id"] == entry_id(owner, *place))


def candidate(owner: Owner, hit: Mapping[str, Any], score: float) -> Candidate:
    """A hit that brings the fields along that searches.PLACING names."""
    fields = hit["fields"]
    [document_id], [index_key], [ordinal] = (
        fields[name] for name in ("document_id", "index_key", "ordinal")
    )
    # A build of an earlier schema has no other key. A uri is left out that is too long to sort by.
    [text_key] = fields.get("text_key") or fields["text_sha256"]
    [uri] = fields.get("uri", [""])
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


def live_entry(hit: Mapping[str, Any], digest_key: bytes | None) -> ScannedEntry:
    """A hit of a scan as what the index really holds."""
    fields = hit["_source"]
    return ScannedEntry(
        id=hit["_id"],
        tenant=fields.get("tenant", ""),
        incarnation=fields.get("incarnation", 0),
        generation=fields.get("generation", 0),
        document_id=fields.get("document_id", ""),
        index_key=fields.get("index_key", ""),
        ordinal=fields.get("ordinal", -1),
        access_scope=fields.get("access_scope", ""),
        correctly_routed=hit.get("_routing") == fields.get("tenant"),
        intact="terms" in fields and stored_fields.is_intact(fields, digest_key),
    )
