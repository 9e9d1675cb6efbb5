"""Origins of hits: the repository that a source reads, its commit, and whether files differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rag_assets.common.errors import RagAssetsError
from rag_assets.common.settings import Settings
from rag_assets.ingest.sources.kinds import DescribeOrigin, SourceConfig, SourceContext
from rag_assets.ingest.sources.model import path_of
from rag_assets.search.model import Hit, Origin
from rag_assets.tenants.model import Tenant


@dataclass(frozen=True, slots=True)
class Origins:
    """The opened sources of a tenant that describe origins; they can be opened before hits exist.

    Attributes:
        sources: by source that can be read locally, the function that describes its files'
            origins.
    """

    sources: dict[str, DescribeOrigin]

    @classmethod
    def of(cls, tenant: Tenant, settings: Settings) -> Origins:
        """Open the sources of a tenant.

        Args:
            settings: settings that define which folders may be read.
        """
        context = SourceContext(base=settings.home, allowed_roots=tuple(settings.allowed_roots))
        found = {one.name: _open_source(one, tenant, context) for one in tenant.sources}
        return cls({name: described for name, described in found.items() if described})

    def told(self, hits: Sequence[Hit]) -> tuple[Hit, ...]:
        """Return the hits, with an origin added to those whose source can be read locally."""
        origins: dict[str, Origin] = {}
        for name, described in self.sources.items():
            of_source = [hit.uri for hit in hits if hit.uri.partition("/")[0] == name]
            if of_source:
                origins |= _origins(described, of_source)
        return tuple(
            replace(hit, origin=origins[hit.uri]) if hit.uri in origins else hit for hit in hits
        )


def describes_origins(tenant: Tenant) -> bool:
    """Return whether a tenant has a source that reads facts and describes its files' origins."""
    return tenant.reads_facts and any(
        tenant.source_kind(one).describe is not None for one in tenant.sources
    )


def _open_source(
    config: SourceConfig, tenant: Tenant, context: SourceContext
) -> DescribeOrigin | None:
    describe = tenant.source_kind(config).describe
    try:
        return None if describe is None else describe(config, context)
    except (RagAssetsError, OSError):
        # The source may exist only on the indexing machine. Hits are found without it.
        return None


def _origins(described: DescribeOrigin, uris: Sequence[str]) -> dict[str, Origin]:
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
