"""The kinds that a tenant's configuration can name: the built-in kinds and those from systems."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache

from pydantic import ValidationInfo

from rag_assets.common.kinds import by_name
from rag_assets.ingest.chunking.chunkers import CHUNKERS, ChunkerKinds
from rag_assets.ingest.sources.registry import SOURCE_KINDS, SourceKinds
from rag_assets.plugins.registry import Systems, installed_systems


@dataclass(frozen=True, slots=True)
class TenantKinds:
    """The kinds of sources and chunkers that a tenant's configuration may name."""

    sources: SourceKinds = field(default_factory=lambda: SOURCE_KINDS)
    chunkers: ChunkerKinds = field(default_factory=lambda: CHUNKERS)


def installed_kinds() -> TenantKinds:
    """Return the built-in kinds and the kinds of the installed systems."""
    return _load_kinds(installed_systems())


def read_kinds(info: ValidationInfo) -> TenantKinds:
    """Return the kinds in the context of a validation; without a context, all installed kinds."""
    return info.context if isinstance(info.context, TenantKinds) else installed_kinds()


@lru_cache(maxsize=4)
def _load_kinds(systems: Systems) -> TenantKinds:
    sources = systems.load("source_kinds", reserved=SOURCE_KINDS)
    chunkers = systems.load("chunkers", reserved=CHUNKERS)
    return TenantKinds(
        sources=by_name(SOURCE_KINDS.values(), sources.values()),
        chunkers=by_name(CHUNKERS.values(), chunkers.values()),
    )
