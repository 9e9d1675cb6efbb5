"""Records from which files derived documents and labels were computed, and detects changes."""

from __future__ import annotations

from typing import Final

from rag_assets.common.hashing import key_of
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.systems.code_memory.catalog.code_catalog import code_catalog
from rag_assets.systems.code_memory.sources.derived import DerivedConfig
from rag_assets.tenants.model import Tenant

DERIVING_VERSION: Final = 5
"""Increase this number when the same files would yield other derived documents or labels."""


def derived_configs(tenant: Tenant) -> dict[str, DerivedConfig]:
    """Return a tenant's sources of derived documents, by the source they are derived from."""
    return {one.of: one for one in tenant.sources if isinstance(one, DerivedConfig)}


def due_sources(catalog: Catalog, tenant: Tenant, generation: int) -> dict[str, str]:
    """Return the sources whose derived documents are out of date, with their current fingerprint.

    Args:
        catalog: contains the recorded fingerprints.
        tenant: the tenant of the documents.
        generation: the build with the files to compare.
    """
    return _compared(catalog, tenant, generation, same=False)


def settled_sources(catalog: Catalog, tenant: Tenant, generation: int) -> dict[str, str]:
    """Return the sources whose derived documents are up to date, with their fingerprint.

    Args:
        catalog, tenant, generation: see due_sources.
    """
    return _compared(catalog, tenant, generation, same=True)


def _compared(catalog: Catalog, tenant: Tenant, generation: int, *, same: bool) -> dict[str, str]:
    configs = derived_configs(tenant)
    if not configs:
        return {}
    found = code_catalog(catalog).derivations.fingerprints(tenant.id, generation, configs)
    known = code_catalog(catalog).derivations.recorded(tenant.id)
    # Only if the tenant has own frameworks: the keys of other tenants must not change.
    own = [tenant.own_frameworks] if tenant.own_frameworks else []
    now = {
        source: key_of("derived", DERIVING_VERSION, tenant.access.scope, said, *own)
        for source, said in found.items()
    }
    return {source: key for source, key in now.items() if (known.get(source) == key) is same}
