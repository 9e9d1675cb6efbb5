"""Sources of records that code memory itself writes, one of each kind for each source of files.

The service puts the events of agent runs into the catalog when they arrive. At its end, a sync
records the routes and tables that it derives from files (pipeline/fact_store.py). A tenant has
these sources if its profile records runs, or derives documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from rag_assets.common.errors import ConfigurationError
from rag_assets.ingest.sources.kinds import SourceConfig, SourceContext, SourceKind
from rag_assets.ingest.sources.records import RecordsConfig, RecordsSource
from rag_assets.systems.code_memory.symbols.source_types import SOURCE_TYPES

_RUNS_SUFFIX: Final = ".runs"
_LONGEST_RUNS: Final = 63 - len(_RUNS_SUFFIX)


class RunsConfig(SourceConfig):
    """The configuration of a source of run records; tenants never configure it themselves.

    Attributes:
        name: the source's given name; part of every document's identity.
        scope: the access scope of records that state none, if it differs from the tenant's; it is
            the scope of the files.
        of: the name of the source of files.
    """

    type: Literal["runs"] = "runs"
    of: str


def build_runs_config(files: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of the source of run records for a source of files."""
    of, scope = files["name"], files.get("scope")
    config = {"name": of[:_LONGEST_RUNS] + _RUNS_SUFFIX, "type": "runs", "of": of}
    return config if scope is None else {**config, "scope": scope}


def _build_source(config: SourceConfig, context: SourceContext) -> RecordsSource:
    if context.records is None:
        raise ConfigurationError(
            f"source {config.name!r} cannot be opened without a catalog, which stores its records",
            hint="open the source with the tenant's catalog",
        )
    return RecordsSource(RecordsConfig(name=config.name, scope=config.scope), context.records)


RUNS = SourceKind(
    *("runs", RunsConfig, _build_source),
    kept=True,
    implicit=True,
    source_types=("run_summary", "file_change"),
)


_DERIVED_SUFFIX: Final = ".derived"
_LONGEST_DERIVED: Final = 63 - len(_DERIVED_SUFFIX)


class DerivedConfig(SourceConfig):
    """The configuration of a source of derived documents; tenants never configure it themselves.

    Attributes:
        name: the source's given name; part of every document's identity.
        scope: not used: derived documents have the scope of the files they are derived from.
        of: the name of the source of these files.
    """

    type: Literal["derived"] = "derived"
    of: str


def build_derived_config(files: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of the source of derived documents for a source of files."""
    of = files["name"]
    return {"name": of[:_LONGEST_DERIVED] + _DERIVED_SUFFIX, "type": "derived", "of": of}


def get_repository_source(source: str) -> str:
    """Return the source of files to which a derived or runs source belongs; else `source`."""
    return source.removesuffix(_DERIVED_SUFFIX).removesuffix(_RUNS_SUFFIX)


DERIVED = SourceKind(
    "derived", DerivedConfig, _build_source, kept=True, implicit=True, source_types=SOURCE_TYPES
)
