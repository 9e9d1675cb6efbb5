"""Where hits of repositories come from: the repository, its commit, and whether files differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rag_assets.common.errors import RagAssetsError
from rag_assets.common.settings import Settings
from rag_assets.ingest.sources.git import GitConfig, GitSource
from rag_assets.ingest.sources.kinds import SourceContext
from rag_assets.ingest.sources.model import path_of
from rag_assets.retrieval.model import Hit, Origin
from rag_assets.tenants.model import Tenant


def with_origins(hits: Sequence[Hit], tenant: Tenant, settings: Settings) -> tuple[Hit, ...]:
    """The hits, those of repositories that can be read here with their origin.

    Args:
        hits: of a search.
        tenant: that they are of.
        settings: say which folders may be read.
    """
    origins: dict[str, Origin] = {}
    for config in tenant.sources:
        of_source = [hit.uri for hit in hits if hit.uri.partition("/")[0] == config.name]
        if isinstance(config, GitConfig) and of_source:
            origins |= _origins(config, tenant, settings, of_source)
    return tuple(
        replace(hit, origin=origins[hit.uri]) if hit.uri in origins else hit for hit in hits
    )


def _origins(
    config: GitConfig, tenant: Tenant, settings: Settings, uris: Sequence[str]
) -> dict[str, Origin]:
    context = SourceContext(base=settings.home, allowed_roots=tuple(settings.allowed_roots))
    paths = {uri: path_of(uri) for uri in uris}
    try:
        source = tenant.source_kind(config).build(config, context)
        if not isinstance(source, GitSource):
            return {}
        found = source.describe(set(paths.values()))
    except (RagAssetsError, OSError):
        # The repository may be on the machine that indexes it alone: hits are found without it.
        return {}
    differing = found.differing
    return {
        uri: Origin(
            found.repository, found.commit, None if differing is None else path in differing
        )
        for uri, path in paths.items()
    }
