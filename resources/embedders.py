"""The tenants' embedders."""

import dagster as dg

from rag_assets.accounts.embedders import Embedders
from rag_assets.catalog.catalog import Catalog
from rag_assets.settings import Settings


class EmbedderResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Finds the embedder of a tenant."""

    def embedders(self, catalog: Catalog) -> Embedders:
        """The embedders of the tenants in a catalog."""
        return Embedders(catalog, Settings.from_environment())
