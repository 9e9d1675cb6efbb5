"""The services of workspaces over a service's backend, for endpoints and pages."""

from __future__ import annotations

from rag_assets.api.backend import Backend
from rag_assets.systems.workspace.settings import SettingsService
from rag_assets.systems.workspace.tree import TreeService


def settings_service(backend: Backend) -> SettingsService:
    """What reads and changes settings."""
    allowed, masker = backend.embedders.settings.private_endpoints, backend.retriever.masker
    return SettingsService(backend.catalog, allowed, masker, backend.vectors)


def tree_service(backend: Backend) -> TreeService:
    """What tells who reads a page."""
    return TreeService(backend.catalog, backend.blobs, backend.retriever.masker)
