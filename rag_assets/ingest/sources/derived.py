"""Documents that follow from the files of another source, as a source: routes and tables.

They are records that the end of a sync puts into the catalog (pipeline/deriving.py); tenants whose
profile derives documents have one such source for each source of files.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from rag_assets.code.source_types import SOURCE_TYPES
from rag_assets.common.errors import ConfigurationError
from rag_assets.ingest.sources.kinds import SourceConfig, SourceContext, SourceKind
from rag_assets.ingest.sources.records import RecordsConfig, RecordsSource
from rag_assets.ingest.sources.runs import SUFFIX as RUNS_SUFFIX

_SUFFIX: Final = ".derived"
_LONGEST: Final = 63 - len(_SUFFIX)


class DerivedConfig(SourceConfig):
    """Documents that follow from the files of another source; no tenant names them itself.

    Attributes:
        name: the source's given name; part of every document's identity.
        scope: not used: they have the scope of the files that they follow from.
        of: the name of that source.
    """

    type: Literal["derived"] = "derived"
    of: str


def derived_source(of: str) -> dict[str, Any]:
    """The configuration of the source that holds what follows from another."""
    return {"name": of[:_LONGEST] + _SUFFIX, "type": "derived", "of": of}


def repository_of(source: str) -> str:
    """The source whose names a document of a source speaks of: its own, or that it follows from."""
    return source.removesuffix(_SUFFIX).removesuffix(RUNS_SUFFIX)


def _build(config: DerivedConfig, context: SourceContext) -> RecordsSource:
    if context.records is None:
        raise ConfigurationError(
            f"source {config.name!r}: derived documents need a catalog, and none is open",
            hint="open it with the tenant's catalog",
        )
    return RecordsSource(RecordsConfig(name=config.name), context.records)


DERIVED = SourceKind(
    "derived", DerivedConfig, _build, kept=True, implicit=True, source_types=SOURCE_TYPES
)
