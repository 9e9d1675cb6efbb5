"""A source of the changes and summaries that agent runs report about a repository's files.

The service puts these records into the catalog when events of runs arrive. In a tenant whose
profile records runs, there is one runs source for each source of files.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from rag_assets.common.errors import ConfigurationError
from rag_assets.ingest.sources.kinds import SourceConfig, SourceContext, SourceKind
from rag_assets.ingest.sources.records import RecordsConfig, RecordsSource

SUFFIX: Final = ".runs"
_LONGEST: Final = 63 - len(SUFFIX)


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


def runs_source(files: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of the source of run records for a source of files."""
    of, scope = files["name"], files.get("scope")
    config = {"name": of[:_LONGEST] + SUFFIX, "type": "runs", "of": of}
    return config if scope is None else {**config, "scope": scope}


def _build(config: RunsConfig, context: SourceContext) -> RecordsSource:
    if context.records is None:
        raise ConfigurationError(
            f"source {config.name!r} cannot be opened without a catalog, which stores the events of"
            " runs",
            hint="open the source with the tenant's catalog",
        )
    return RecordsSource(RecordsConfig(name=config.name, scope=config.scope), context.records)


RUNS = SourceKind(
    *("runs", RunsConfig, _build),
    kept=True,
    implicit=True,
    source_types=("run_summary", "file_change"),
)
