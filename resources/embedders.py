"""The Dagster resource of the tenants' embedders."""

import dagster as dg

from rag_assets.billing.embedders import Embedders
from rag_assets.resources.installation import InstallationResource
from rag_assets.storage.catalog.catalog import Catalog


class EmbedderResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Finds the embedder of a tenant."""

    installation: dg.ResourceDependency[InstallationResource]

    def embedders(self, catalog: Catalog) -> Embedders:
        """Return the embedders of the tenants in a catalog."""
        return Embedders(catalog, self.installation.settings)
