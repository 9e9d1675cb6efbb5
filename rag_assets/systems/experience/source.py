"""The source of entries, which lists entries included in a checkpoint as records of the catalog."""

from __future__ import annotations

from typing import Literal

from rag_assets.common.errors import ConfigurationError
from rag_assets.ingest.sources.kinds import SourceConfig, SourceContext, SourceKind
from rag_assets.ingest.sources.records import RecordsConfig, RecordsSource

SOURCE_TYPE = "experience"
"""Source type of every entry's document."""


class EntriesConfig(SourceConfig):
    """Entries that orchestrators captured, one document each.

    Attributes:
        name: name of the source; part of every document's identity.
        scope: the access scope of entries; by default the tenant's.
    """

    type: Literal["experience"] = "experience"


def _build(config: EntriesConfig, context: SourceContext) -> RecordsSource:
    if context.records is None:
        raise ConfigurationError(
            f"source {config.name!r}: reading entries needs an open catalog",
            hint="open the source with the tenant's catalog",
        )
    return RecordsSource(RecordsConfig(name=config.name, scope=config.scope), context.records)


EXPERIENCE = SourceKind("experience", EntriesConfig, _build, kept=True, source_types=(SOURCE_TYPE,))
