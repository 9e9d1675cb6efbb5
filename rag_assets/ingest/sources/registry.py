"""The built-in kinds of sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.kinds import by_name, find_kind
from rag_assets.ingest.sources.files import FILES
from rag_assets.ingest.sources.kinds import SourceConfig, SourceKind
from rag_assets.ingest.sources.records import RECORDS
from rag_assets.ingest.sources.uploads import UPLOADS

SourceKinds: TypeAlias = Mapping[str, SourceKind[Any]]

SOURCE_KINDS: SourceKinds = by_name((FILES, RECORDS, UPLOADS))
"""To add a kind, define one SourceKind in its own module and list it here."""

DEFAULT_KIND = FILES.name
"""The kind of a configuration without a `type`."""


def get_source_kind(
    config: SourceConfig | Mapping[str, Any], kinds: SourceKinds
) -> SourceKind[Any]:
    """Return the kind of a source's configuration."""
    name = config.type if isinstance(config, SourceConfig) else config.get("type", DEFAULT_KIND)
    return find_kind(name, kinds, "type of source", offered=lambda kind: not kind.implicit)


def get_paths_by_field(source: Mapping[str, Any], kinds: SourceKinds) -> dict[str, str]:
    """Return the paths in a source's configuration, by field; empty for an unknown kind."""
    try:
        fields = get_source_kind(source, kinds).path_fields
    except ConfigurationError:
        return {}
    return {field: source[field] for field in fields if isinstance(source.get(field), str)}
