"""From a tenant's configuration to its reranker."""

from __future__ import annotations

from rag_assets.embedding.protocol import Credentials
from rag_assets.private_endpoints import PrivateEndpoints
from rag_assets.reranking.config import RerankConfig
from rag_assets.reranking.protocol import Reranker


def build_reranker(
    config: RerankConfig, *, credentials: Credentials, network: PrivateEndpoints
) -> Reranker:
    """Make the configured reranker; models are loaded and servers asked at their first use.

    Args:
        config: which.
        credentials: gives the tenant's key; not asked for what runs on this machine.
        network: servers beyond the public internet that a url may lead to.

    Raises:
        ConfigurationError: the configured folder is missing or not usable.
    """
    if config.folder is not None:
        from rag_assets.reranking.cross_encoder import CrossEncoder

        return CrossEncoder(config.folder, config.threads)
    from rag_assets.reranking.endpoint import RerankEndpoint

    return RerankEndpoint(config, credentials, network)


def require_usable(config: RerankConfig) -> None:
    """Load a configured model and let it read a pair; an endpoint is not asked.

    Raises:
        ConfigurationError: its folder is missing, or holds no cross-encoder.
    """
    if config.folder is not None:
        from rag_assets.reranking.cross_encoder import CrossEncoder

        CrossEncoder(config.folder, threads=1).check()
