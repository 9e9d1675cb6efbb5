"""Errors of agents' documentation."""

from __future__ import annotations

from rag_assets.common.errors import ConfigurationError, RagAssetsError


class UnknownAgent(ConfigurationError):
    """No agents.yaml declares an agent with this id."""

    exit_status = 2


class DamagedIndex(RagAssetsError):
    """An index cannot be read; the next build moves it aside and replaces it."""

    def __init__(self, path: str) -> None:
        super().__init__(
            f"the index in {path} is damaged", hint="run `rag-assets agent index` to build it again"
        )
