"""Names, settings and mappings of the indexes in Elasticsearch, and their verified creation.

An index template of somebody else with a matching pattern adds settings, mappings and aliases to a
new index. For example, a template that keeps fields out of `_source` makes the index lose every
text. So each new index is compared with what was requested.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Final, get_args

from elastic_transport import TransportError
from elasticsearch import ApiError, BadRequestError, Elasticsearch

from rag_assets.common.elasticsearch_settings import IndexLayout
from rag_assets.common.errors import IndexUnavailable
from rag_assets.storage.index.model import SCHEMA_VERSION, IndexSpec, Owner, VectorIndex

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
_OVERSAMPLING: Mapping[VectorIndex, float] = {"int8_hnsw": 2.0, "bbq_hnsw": 3.0}
"""How many candidates are compared by their exact vectors, as a multiple of the wanted number."""


@dataclass(frozen=True, slots=True)
class IndexNames:
    """The names of one installation's indexes and aliases.

    Attributes:
        former: former prefixes of the installation, which may still have indexes.
    """

    prefix: str = "rag"
    former: tuple[str, ...] = ()

    def alias(self, tenant: str) -> str:
        """Return the name of the alias that is a tenant's view."""
        return f"{self.prefix}-tenant-{tenant}"

    def aliases(self, tenant: str) -> list[str]:
        """Return the alias of a tenant under the current and each former prefix."""
        return [f"{prefix}-tenant-{tenant}" for prefix in self._prefixes]

    def shared_stem(self, spec: IndexSpec) -> str:
        """Return the names of a spec's shared indexes without the number at their end."""
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
    def notes_index(self) -> str:
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


def build_write_alias(index_name: str) -> str:
    """Return the alias for writing to an index; it disappears with the index."""
    return f"{index_name}-write"


def build_index_settings(layout: IndexLayout, *, is_serverless: bool = False) -> dict[str, Any]:
    """Return the settings that the installation chooses for an index.

    Args:
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


def build_index_body(
    spec: IndexSpec,
    meta: Mapping[str, Any] = MappingProxyType({}),
    layout: IndexLayout = IndexLayout(),  # noqa: B008 - frozen
    *,
    is_serverless: bool = False,
) -> dict[str, Any]:
    """Return settings and mappings for a new index.

    Args:
        meta: the `_meta` of the mapping, which names the owner.
    """
    options: dict[str, Any] = {
        "type": spec.vector_index,
        "flat_index_threshold": compute_flat_index_threshold(spec),
    }
    if spec.vector_index in _OVERSAMPLING:
        options["rescore_vector"] = {"oversample": _OVERSAMPLING[spec.vector_index]}
    return {
        "settings": {
            "index": {
                **build_index_settings(layout, is_serverless=is_serverless),
                "mapping": {"total_fields": {"limit": 64}},
            },
            "analysis": {"analyzer": {"prose": {"type": "standard", "stopwords": "_english_"}}},
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


def compute_flat_index_threshold(spec: IndexSpec) -> int:
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
    """Return whether mappings match a spec and store whole entries; extra fields are allowed."""
    wanted = build_index_body(spec)["mappings"]["properties"]
    fields = mappings.get("properties", {})
    vector = fields.get("vector", {})
    kind = vector.get("index_options", {}).get("type")
    return (
        "_source" not in mappings
        and all(fields.get(name, {}).get("type") == field["type"] for name, field in wanted.items())
        and (vector.get("dims"), kind) == (spec.dimensions, spec.vector_index)
        and vector.get("similarity") == wanted["vector"]["similarity"]
    )


def build_owner_clauses(owner: Owner) -> list[dict[str, Any]]:
    """Return filter clauses that match exactly one generation of one tenant."""
    return [
        {"term": {"tenant": owner.tenant}},
        {"term": {"incarnation": owner.incarnation}},
        {"term": {"generation": owner.generation}},
    ]


_EXISTS: Final = "resource_already_exists_exception"
_FORBIDDEN_MAPPING_PARTS: Final = ("_source", "runtime", "enabled")
"""Parts of a mapping that change what is stored or found; none of the project's indexes has
them."""
_FORBIDDEN_SETTING_PREFIXES: Final = (
    *("index.mapping.", "index.analysis.", "index.blocks.", "index.lifecycle.", "index.sort."),
    *("index.similarity.", "index.default_pipeline", "index.final_pipeline", "index.mode"),
)
"""Prefixes of settings that change what is stored, found or kept."""


def create_index(
    client: Elasticsearch,
    name: str,
    body: Mapping[str, Any],
    aliases: Mapping[str, Any] | None = None,
) -> None:
    """Create an index if it does not exist, and verify that it was created as requested.

    An index that differs is deleted again, so that nothing is ever written to it.

    Raises:
        IndexUnavailable: an index template changes the index, or forbids its creation.
    """
    try:
        client.indices.create(index=name, **body, aliases=aliases, wait_for_active_shards=1)
    except BadRequestError as error:
        if error.error == _EXISTS:
            return
        if _find_templates(client, name):
            raise _build_template_error(
                client, name, f"Elasticsearch rejects the request ({error.error})"
            ) from None
        raise
    live = client.indices.get(index=name, flat_settings=True)[name]
    difference = next(differences(live["mappings"], live["settings"], body), None)
    if difference is not None:
        client.indices.delete(index=name, ignore_unavailable=True)
        raise _build_template_error(client, name, difference)


def differences(
    mappings: Mapping[str, Any], settings: Mapping[str, Any], body: Mapping[str, Any]
) -> Iterator[str]:
    """Yield descriptions of how an index differs from the request; extra fields are allowed."""
    wanted = body["mappings"]
    yield from (
        f"its mapping has `{part}`" for part in _FORBIDDEN_MAPPING_PARTS if part in mappings
    )
    for part in wanted.keys() - {"properties", "_meta"}:
        if not _is_within(wanted[part], mappings.get(part)):
            yield f"its mapping has a different `{part}`"
    fields = mappings.get("properties", {})
    for name, field in wanted["properties"].items():
        live = fields.get(name, {})
        # Elasticsearch adds defaults only to the options of vector fields.
        complete = "dims" in field or live.keys() <= field.keys()
        if not (complete and _is_within(field, live)):
            yield f"its field `{name}` has a different mapping"
    requested = dict(iter_flat_settings(body["settings"]))
    for name, value in settings.items():
        if name in requested:
            if _normalize(requested[name]) != _normalize(value):
                yield f"its setting `{name}` is {value!r}"
        elif name.startswith(_FORBIDDEN_SETTING_PREFIXES):
            yield f"it has the setting `{name}`"


def _is_within(wanted: Any, live: Any) -> bool:
    """Return whether `live` contains everything in `wanted`."""
    if isinstance(wanted, Mapping):
        return isinstance(live, Mapping) and all(
            _is_within(value, live.get(key)) for key, value in wanted.items()
        )
    return _normalize(wanted) == _normalize(live)


def _normalize(value: Any) -> str:
    """Return a value as a lower-case string, as Elasticsearch returns settings."""
    return str(value).lower()


def iter_flat_settings(
    settings: Mapping[str, Any], prefix: str = "index"
) -> Iterator[tuple[str, Any]]:
    """Yield the full name ("index.refresh_interval") and the value of each nested setting."""
    for key, value in settings.items():
        name = key if key == prefix else f"{prefix}.{key}"
        if isinstance(value, Mapping):
            yield from iter_flat_settings(value, name)
        else:
            yield name, value


def _build_template_error(client: Elasticsearch, name: str, difference: str) -> IndexUnavailable:
    templates = _find_templates(client, name)
    if not templates:
        return IndexUnavailable(
            f"index {name!r} is not created as requested: {difference}",
            hint="an index template or a plugin of Elasticsearch changes it: check GET"
            f" /_index_template and POST /_index_template/_simulate_index/{name}",
        )
    named = " and ".join(repr(template) for template, _ in templates)
    above = max(priority for _, priority in templates) + 1
    pattern = f"{name.split('-', maxsplit=1)[0]}-*"
    return IndexUnavailable(
        f"index {name!r} is not created as requested: {difference}, because of the index"
        f" template {named}; nothing was embedded or written",
        hint=f"change index_patterns of {named} in Elasticsearch, or exempt the indexes of this"
        f' installation: PUT /_index_template/rag-assets {{"index_patterns": ["{pattern}"],'
        f' "priority": {above}}}; then sync again',
    )


def _find_templates(client: Elasticsearch, name: str) -> list[tuple[str, int]]:
    """Return the templates that apply to new indexes of a name, each with its priority.

    Only the composable template with the highest priority applies, or else all legacy templates.
    The result is empty if this account may not see templates.
    """
    try:
        answer = client.indices.get_index_template()["index_templates"]
        composable = [
            (one["name"], int(one["index_template"].get("priority", 0)))
            for one in answer
            if _match_patterns(name, one["index_template"]["index_patterns"])
        ]
        if composable:
            return [max(composable, key=itemgetter(1))]
        former = client.indices.get_template().items()
        return [(key, 0) for key, one in former if _match_patterns(name, one["index_patterns"])]
    except (ApiError, TransportError):
        return []


def _match_patterns(name: str, patterns: list[str] | str) -> bool:
    listed = [patterns] if isinstance(patterns, str) else patterns
    return any(fnmatchcase(name, pattern) for pattern in listed)
