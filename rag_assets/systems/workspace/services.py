"""The services of workspaces over the API's backend, for endpoints and pages."""

from __future__ import annotations

from rag_assets.api.backend import Backend
from rag_assets.systems.workspace.settings import SettingsService
from rag_assets.systems.workspace.tree_service import TreeService


def settings_service(backend: Backend) -> SettingsService:
    """Return the service for settings."""
    allowed, masker = backend.embedders.settings.private_endpoints, backend.retriever.masker
    return SettingsService(backend.catalog, allowed, masker, backend.vectors)


def tree_service(backend: Backend) -> TreeService:
    """Return the service for the tree and the access to its pages."""
    return TreeService(backend.catalog, backend.blobs, backend.retriever.masker)
