"""A source of routes and tables that are derived from the files of a different source.

At its end, a sync puts these records into the catalog (pipeline/deriving.py). In a tenant whose
profile derives documents, there is one derived source for each source of files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from rag_assets.common.errors import ConfigurationError
from rag_assets.ingest.sources.kinds import SourceConfig, SourceContext, SourceKind
from rag_assets.ingest.sources.records import RecordsConfig, RecordsSource
from rag_assets.systems.code_memory.sources.runs import SUFFIX as RUNS_SUFFIX
from rag_assets.systems.code_memory.symbols.source_types import SOURCE_TYPES

_SUFFIX: Final = ".derived"
_LONGEST: Final = 63 - len(_SUFFIX)


class DerivedConfig(SourceConfig):
    """The configuration of a source of derived documents; tenants never configure it themselves.

    Attributes:
        name: the source's given name; part of every document's identity.
        scope: not used: derived documents have the scope of the files they are derived from.
        of: the name of the source of these files.
    """

    type: Literal["derived"] = "derived"
    of: str


def derived_source(files: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of the source of derived documents for a source of files."""
    of = files["name"]
    return {"name": of[:_LONGEST] + _SUFFIX, "type": "derived", "of": of}


def repository_of(source: str) -> str:
    """Return the source of files that a derived or runs source belongs to; else the same name."""
    return source.removesuffix(_SUFFIX).removesuffix(RUNS_SUFFIX)


def _build(config: DerivedConfig, context: SourceContext) -> RecordsSource:
    if context.records is None:
        raise ConfigurationError(
            f"source {config.name!r} cannot be opened without a catalog, which stores its derived"
            " documents",
            hint="open the source with the tenant's catalog",
        )
    return RecordsSource(RecordsConfig(name=config.name), context.records)


DERIVED = SourceKind(
    "derived", DerivedConfig, _build, kept=True, implicit=True, source_types=SOURCE_TYPES
)
