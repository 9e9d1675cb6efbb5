"""The services of team guidelines as one object, for endpoints, commands and pages."""

from __future__ import annotations

from rag_assets.billing.embedders import Embedders
from rag_assets.pipeline.uploads import Uploads
from rag_assets.storage.blobs.store import BlobStore
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.lake.store import Lake
from rag_assets.systems.team_guidelines.keys import GuidelineKeys
from rag_assets.systems.team_guidelines.library import GuidelineLibrary
from rag_assets.systems.team_guidelines.projects import GuidelineProjects
from rag_assets.systems.team_guidelines.usage import GuidelineUsage


class Guidelines:
    """Team guidelines of an installation. Every call blocks; no connection stays open.

    Args:
        embedders: embedders of the tenants.
        uploads: accepts and removes files.

    Attributes:
        projects: finds, shows and changes projects and organizations.
        keys: provider keys of projects and organizations.
        library: documents of projects.
        usage: reports the usage of projects.
    """

    def __init__(
        self, catalog: Catalog, embedders: Embedders, blobs: BlobStore, uploads: Uploads
    ) -> None:
        lake = Lake(embedders.settings.lake_url)
        self.projects = GuidelineProjects(catalog, embedders)
        self.keys = GuidelineKeys(catalog, embedders)
        self.library = GuidelineLibrary(catalog, blobs, lake, uploads, self.keys)
        self.usage = GuidelineUsage(catalog, self.library)
