"""Origins of hits in repositories: the repository, its commit, and whether files differ."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from rag_assets.common.errors import RagAssetsError
from rag_assets.common.settings import Settings
from rag_assets.ingest.sources.kinds import SourceContext
from rag_assets.ingest.sources.model import path_of
from rag_assets.retrieval.model import Hit, Origin
from rag_assets.systems.code_memory.sources.git import GitConfig, GitSource
from rag_assets.systems.code_memory.sources.repositories.repository import RepositoryDescription
from rag_assets.tenants.model import Tenant

_Described: TypeAlias = Callable[[Collection[str]], RepositoryDescription]


@dataclass(frozen=True, slots=True)
class Origins:
    """The opened repositories of a tenant; they can be opened before there are hits.

    Attributes:
        sources: functions that describe the locally readable repositories, by source.
    """

    sources: dict[str, _Described]

    @classmethod
    def of(cls, tenant: Tenant, settings: Settings) -> Origins:
        """Open the repositories of a tenant.

        Args:
            settings: define which folders may be read.
        """
        context = SourceContext(base=settings.home, allowed_roots=tuple(settings.allowed_roots))
        configs = [one for one in tenant.sources if isinstance(one, GitConfig)]
        found = {one.name: _opened(one, tenant, context) for one in configs}
        return cls({name: described for name, described in found.items() if described})

    def told(self, hits: Sequence[Hit]) -> tuple[Hit, ...]:
        """Return the hits, with the origin of those in locally readable repositories."""
        origins: dict[str, Origin] = {}
        for name, described in self.sources.items():
            of_source = [hit.uri for hit in hits if hit.uri.partition("/")[0] == name]
            if of_source:
                origins |= _origins(described, of_source)
        return tuple(
            replace(hit, origin=origins[hit.uri]) if hit.uri in origins else hit for hit in hits
        )


def _opened(config: GitConfig, tenant: Tenant, context: SourceContext) -> _Described | None:
    try:
        source = tenant.source_kind(config).build(config, context)
        return source.opened() if isinstance(source, GitSource) else None
    except (RagAssetsError, OSError):
        # The repository may exist only on the indexing machine: hits are found without it.
        return None


def _origins(described: _Described, uris: Sequence[str]) -> dict[str, Origin]:
    paths = {uri: path_of(uri) for uri in uris}
    try:
        found = described(set(paths.values()))
    except (RagAssetsError, OSError):
        return {}
    differing = found.differing
    return {
        uri: Origin(
            found.repository, found.commit, None if differing is None else path in differing
        )
        for uri, path in paths.items()
    }
