"""Names, settings and mappings of the indexes in Elasticsearch."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, get_args

from rag_assets.common.elasticsearch_settings import IndexLayout
from rag_assets.storage.index.model import (
    SCHEMA_VERSION,
    IndexSpec,
    Owner,
    VectorIndex,
)

_KEYWORD = {"type": "keyword"}
_INTEGER = {"type": "integer"}
_STORED_KEYWORD = {"type": "keyword", "index": False, "doc_values": False}
_STORED_INTEGER = {"type": "integer", "index": False, "doc_values": False}
_SCANNED_NUMBERS: Mapping[VectorIndex, int] = {
    "hnsw": 8_000_000,
    "int8_hnsw": 8_000_000,
    "bbq_hnsw": 64_000_000,
}
"""Limit of a segment for comparing a query with each vector: the total count of numbers in its
vectors."""
_SERVERLESS_REFRESH_SECONDS = 5
"""Shortest refresh interval that Elastic Serverless accepts."""
_OVERSAMPLE: Mapping[VectorIndex, float] = {"int8_hnsw": 2.0, "bbq_hnsw": 3.0}
"""How many candidates are compared by their exact vectors, as a multiple of the wanted number."""


@dataclass(frozen=True, slots=True)
class IndexNames:
    """The names of one installation's indexes and aliases.

    Attributes:
        prefix: separates installations that share a cluster.
        former: former prefixes of the installation, which may still have indexes.
    """

    prefix: str = "rag"
    former: tuple[str, ...] = ()

    def alias(self, tenant: str) -> str:
        """Return the alias that is one tenant's view."""
        return f"{self.prefix}-tenant-{tenant}"

    def aliases(self, tenant: str) -> list[str]:
        """Return the alias of a tenant under the current and each former prefix."""
        return [f"{prefix}-tenant-{tenant}" for prefix in self._prefixes]

    def shared_stem(self, spec: IndexSpec) -> str:
        """Return the name of a spec's shared indexes without the number at its end."""
        kind = spec.vector_index.replace("_", "-")
        suffix = "" if spec.vector_index == "int8_hnsw" else f"-{kind}"
        return f"{self.prefix}-index-{spec.dimensions}-v{SCHEMA_VERSION}{suffix}-"

    def dedicated(self, spec: IndexSpec, tenant: str) -> str:
        """Return the name of a tenant's dedicated index."""
        kind = spec.vector_index.replace("_", "-")
        return f"{self.prefix}-own-{spec.dimensions}-v{SCHEMA_VERSION}-{kind}-{tenant}"

    def is_dedicated(self, index_name: str, tenant: str) -> bool:
        """Return whether an index is dedicated to this tenant."""
        # Comparing only the end of the name would not distinguish the tenants "a" and "b-a".
        kinds = "|".join(kind.replace("_", "-") for kind in get_args(VectorIndex))
        prefixes = "|".join(map(re.escape, self._prefixes))
        stem = rf"(?:{prefixes})-own-\d+-v\d+-(?:{kinds})-"
        return re.fullmatch(stem + re.escape(tenant), index_name) is not None

    @property
    def marks(self) -> str:
        """Return the name of the index that keeps notes about the catalog."""
        return f"{self.prefix}-marks"

    @property
    def patterns(self) -> list[str]:
        """Return patterns that match every index of the installation."""
        kinds = ("index", "own")
        return [f"{prefix}-{kind}-*" for prefix in self._prefixes for kind in kinds]

    @property
    def _prefixes(self) -> tuple[str, ...]:
        return (self.prefix, *self.former)


def alias_for_writes(index_name: str) -> str:
    """Return the alias for writing to an index; it disappears with the index."""
    return f"{index_name}-write"


def index_settings(layout: IndexLayout, *, is_serverless: bool = False) -> dict[str, Any]:
    """Return the settings of an index that the installation chooses.

    Args:
        layout: the layout of the index.
        is_serverless: whether the server is Serverless: it chooses shards, replicas and tiers
            itself, and refuses settings about them and short refresh intervals.
    """
    # Every write through EntryStore refreshes explicitly.
    settings: dict[str, Any] = {"refresh_interval": layout.refresh_interval}
    if is_serverless:
        if 0 < layout.refresh_seconds < _SERVERLESS_REFRESH_SECONDS:
            settings["refresh_interval"] = f"{_SERVERLESS_REFRESH_SECONDS}s"
        return settings
    settings["number_of_shards"] = layout.shards
    if layout.replicas is None:
        settings["auto_expand_replicas"] = "0-1"
    else:
        settings["number_of_replicas"] = layout.replicas
    if layout.tier is not None:
        settings["routing"] = {"allocation": {"include": {"_tier_preference": layout.tier}}}
    return settings


def index_body(
    spec: IndexSpec,
    meta: Mapping[str, Any] = MappingProxyType({}),
    layout: IndexLayout = IndexLayout(),  # noqa: B008 - frozen
    *,
    is_serverless: bool = False,
) -> dict[str, Any]:
    """Return settings and mappings of an index, with the owner in `_meta`."""
    options: dict[str, Any] = {
        "type": spec.vector_index,
        "flat_index_threshold": flat_index_threshold(spec),
    }
    if spec.vector_index in _OVERSAMPLE:
        options["rescore_vector"] = {"oversample": _OVERSAMPLE[spec.vector_index]}
    return {
        "settings": {
            "index": {
                **index_settings(layout, is_serverless=is_serverless),
                "mapping": {"total_fields": {"limit": 64}},
            },
            "analysis": {
                "analyzer": {"prose": {"type": "standard", "stopwords": "_english_"}},
            },
        },
        "mappings": {
            "dynamic": "strict",
            "_routing": {"required": True},
            "_meta": dict(meta),
            "properties": {
                "tenant": _KEYWORD,
                "incarnation": {"type": "long"},
                "generation": _INTEGER,
                "document_id": _KEYWORD,
                "index_key": _KEYWORD,
                "ordinal": _INTEGER,
                "chunk_id": _STORED_KEYWORD,
                "digest": _STORED_KEYWORD,
                "terms_digest": _STORED_KEYWORD,
                "source": _KEYWORD,
                "source_type": _KEYWORD,
                "source_id": _KEYWORD,
                "page_uuid": _KEYWORD,
                "block_id": _KEYWORD,
                "block_starts": _STORED_INTEGER,
                "within": {"type": "integer", "index": False},
                "uri": {"type": "keyword", "ignore_above": 8191},
                "title": {"type": "text", "analyzer": "prose"},
                "heading_path": {"type": "text", "analyzer": "prose"},
                "context": {"type": "text", "analyzer": "prose"},
                "text": {"type": "text", "analyzer": "prose"},
                "terms": {"type": "text", "analyzer": "whitespace"},
                "text_sha256": _KEYWORD,
                "text_key": {"type": "keyword", "index": False},
                "media_type": _KEYWORD,
                "language": _KEYWORD,
                "modified_at": {"type": "date"},
                "page": _INTEGER,
                "slide": _INTEGER,
                "sheet": _KEYWORD,
                "row_start": _STORED_INTEGER,
                "row_end": _STORED_INTEGER,
                "start": _STORED_INTEGER,
                "end": _STORED_INTEGER,
                "line_start": _STORED_INTEGER,
                "line_end": _STORED_INTEGER,
                "length_weight": {"type": "float", "index": False},
                "token_count": _INTEGER,
                "access_scope": _KEYWORD,
                "tags": _KEYWORD,
                "metadata": {"type": "flattened"},
                "vector": {
                    "type": "dense_vector",
                    "dims": spec.dimensions,
                    "index": True,
                    "similarity": "cosine",
                    "index_options": options,
                },
            },
        },
    }


def flat_index_threshold(spec: IndexSpec) -> int:
    """Return the threshold below which Elasticsearch builds no graph for a segment's vectors.

    By default, Elasticsearch builds a graph from about a thousand vectors on, and again in every
    merge. This costs far more than all other work on an entry. Comparing a query with 20,000
    vectors of 384 numbers, or with 160,000 vectors of 384 bits, takes only a few milliseconds. The
    comparison overlooks no vector, and reads only the tenant's vectors.

    Elasticsearch builds a graph if size > threshold * ln(size).
    """
    size = max(_SCANNED_NUMBERS[spec.vector_index] / spec.dimensions, math.e)
    return round(size / math.log(size))


def fits(mappings: Mapping[str, Any], spec: IndexSpec) -> bool:
    """Return whether mappings match a spec and store whole entries; further fields are allowed."""
    wanted = index_body(spec)["mappings"]["properties"]
    fields = mappings.get("properties", {})
    vector = fields.get("vector", {})
    kind = vector.get("index_options", {}).get("type")
    return (
        "_source" not in mappings
        and all(fields.get(name, {}).get("type") == field["type"] for name, field in wanted.items())
        and (vector.get("dims"), kind) == (spec.dimensions, spec.vector_index)
        and vector.get("similarity") == wanted["vector"]["similarity"]
    )


def owner_clauses(owner: Owner) -> list[dict[str, Any]]:
    """Return filter clauses that match exactly one generation of one tenant."""
    return [
        {"term": {"tenant": owner.tenant}},
        {"term": {"incarnation": owner.incarnation}},
        {"term": {"generation": owner.generation}},
    ]
