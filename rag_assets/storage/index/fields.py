"""The stored form of an entry: its fields, and the digest that verifies them."""

from __future__ import annotations

from collections.abc import Mapping
from hmac import compare_digest
from typing import Any

import numpy as np
import numpy.typing as npt

from rag_assets.common.hashing import compute_key, keyed_digest
from rag_assets.common.times import stamp
from rag_assets.ingest.chunking.model import get_location_fields
from rag_assets.storage.index.model import (
    Entry,
    EntryVector,
    Owner,
    ScannedEntry,
    StoredEntry,
    entry_id,
)
from rag_assets.storage.index.terms import (
    MARK,
    choose_analysis,
    compute_lexical_terms,
    sum_word_weights,
)

_HALVING_TERMS = 350
_UNDIGESTED_FIELDS = frozenset({"digest", "terms", "vector"})


def build_entry_source(entry: Entry) -> dict[str, Any]:
    """Return the stored fields of an entry without its vector, with a digest over all of them.

    The field `terms`, which is searched but never returned, has a separate digest. A hit can
    therefore be verified without reading `terms`, which is as long as the text.
    """
    owner, document, chunk = entry.owner, entry.document, entry.chunk
    headings = [part for part in (document.title, *chunk.heading_path) if part]
    passage_source = document.passage_source or f"{owner.tenant}:{document.path}"
    context = [chunk.context] if chunk.context else []
    terms = compute_entry_terms("\n".join([*headings, *context, chunk.text]), document.language)
    fields: dict[str, Any] = {
        "tenant": owner.tenant,
        "incarnation": owner.incarnation,
        "generation": owner.generation,
        "document_id": document.document_id,
        "index_key": document.indexed_key,
        "ordinal": chunk.ordinal,
        "chunk_id": f"{passage_source}:{chunk.byte_start}",
        "source": document.source,
        "source_type": entry.source_type,
        "uri": document.uri,
        "media_type": document.media_type,
        "modified_at": stamp(document.modified_at),
        "heading_path": list(chunk.heading_path),
        "text": chunk.text,
        "terms": terms,
        "terms_digest": compute_key("terms", terms),
        "length_weight": compute_length_weight(sum_word_weights(terms)),
        "text_sha256": chunk.text_sha256,
        # text_sha256 also covers title and headings, so it differs for equal texts under other
        # headings.
        "text_key": compute_key("text", chunk.text, *context),
        "start": chunk.start,
        "end": chunk.end,
        "token_count": chunk.token_count,
        "access_scope": document.access_scope,
        "tags": list(document.tags),
        "metadata": entry.metadata,
    }
    optional: dict[str, Any] = {
        "title": document.title,
        "language": document.language,
        "source_id": document.source_id,
        "page_uuid": document.page_uuid,
        "context": chunk.context or None,
    }
    if chunk.blocks:
        optional |= {
            "block_id": [block.block_id for block in chunk.blocks],
            "block_starts": [block.start for block in chunk.blocks],
        }
    if entry.within:
        optional["within"] = list(entry.within)
    optional |= get_location_fields(chunk.location)
    fields |= {name: value for name, value in optional.items() if value is not None}
    fields["digest"] = hash_fields(fields, owner.digest_key)
    return fields


def compute_entry_terms(text: str, language: str | None) -> str:
    """Return the terms of an entry: a term that names the analysis, then the terms of the text.

    Args:
        language: language of the document; None if uncertain.
    """
    analysis = choose_analysis(text, language)
    return f"{MARK}{analysis} {compute_lexical_terms(text, analysis)}"


def compute_length_weight(terms: float) -> float:
    """Return the factor, at most 1, by which an entry's words count; 350 terms halve it.

    In a long passage, a single word says less about the passage. Terms are counted instead of a
    model's tokens: an English term has one or two tokens, a Greek or Hindi term five.
    """
    return float(f"{0.5 ** (terms / _HALVING_TERMS):.6g}")


def hash_fields(fields: Mapping[str, Any], key: bytes | None) -> str:
    """Return the digest of an entry's stored fields.

    Args:
        fields: the fields as stored; `terms` are covered through their own digest, the vector is
            not covered.
    """
    if key is None:
        return compute_key(
            "fields", {k: v for k, v in fields.items() if k not in ("digest", "vector")}
        )
    return keyed_digest(
        key, "fields", {k: v for k, v in fields.items() if k not in _UNDIGESTED_FIELDS}
    )


def is_intact(fields: Mapping[str, Any], key: bytes | None) -> bool:
    """Return whether stored fields, read with or without `terms`, match their digest."""
    digest, terms = fields.get("digest"), fields.get("terms")
    if not isinstance(digest, str) or not compare_digest(digest, hash_fields(fields, key)):
        return False
    return key is None or terms is None or fields["terms_digest"] == compute_key("terms", terms)


def with_scope(stored: Mapping[str, Any], scope: str, key: bytes | None) -> dict[str, Any]:
    """Return stored fields with a new access scope, and a new digest if the old digest was valid.

    Altered fields therefore still fail verification.
    """
    changed = {**stored, "access_scope": scope}
    if is_intact(stored, key):
        changed["digest"] = hash_fields(changed, key)
    return changed


def build_stored_entry(
    owner: Owner, id_: str, fields: Mapping[str, Any], cosine: float | None = None
) -> StoredEntry:
    """Build an entry from its stored fields; `intact` says whether they were verified."""
    intact = owner.digest_key is None or _is_genuine(owner, id_, fields)
    return StoredEntry(id_, fields["index_key"], fields, intact, cosine)


def build_scanned_entry(
    id_: str, stored: Mapping[str, Any], routing: str | None, key: bytes | None
) -> ScannedEntry:
    """Build the result of a scan for an entry, with defaults for missing fields."""
    return ScannedEntry(
        id=id_,
        tenant=stored.get("tenant", ""),
        incarnation=stored.get("incarnation", 0),
        generation=stored.get("generation", 0),
        document_id=stored.get("document_id", ""),
        index_key=stored.get("index_key", ""),
        ordinal=stored.get("ordinal", -1),
        access_scope=stored.get("access_scope", ""),
        correctly_routed=routing == stored.get("tenant"),
        intact="terms" in stored and is_intact(stored, key),
    )


def build_entry_vector(
    owner: Owner, id_: str, fields: Mapping[str, Any], vector: npt.NDArray[np.float32] | None
) -> EntryVector:
    """Return an entry's vector, and whether the entry is genuine."""
    known = {name: fields.get(name, "") for name in ("document_id", "index_key", "text_sha256")}
    genuine = "terms" in fields and _is_genuine(owner, id_, fields)
    return EntryVector(id_, **known, vector=vector, genuine=genuine)


def _is_genuine(owner: Owner, id_: str, stored: Mapping[str, Any]) -> bool:
    """Return whether an entry's fields are unaltered and belong to its id."""
    if not is_intact(stored, owner.digest_key):
        return False
    # A copy of another entry has a valid digest, but not the right id.
    return id_ == entry_id(owner, stored["document_id"], stored["index_key"], stored["ordinal"])
