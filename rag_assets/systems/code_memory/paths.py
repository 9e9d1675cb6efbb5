"""Paths as agents write them, and the documents that they may refer to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlalchemy import Connection, select

from rag_assets.ingest.sources.model import document_id
from rag_assets.storage.catalog.database import is_any_of
from rag_assets.storage.catalog.tables import documents
from rag_assets.systems.code_memory.sources.runs import RunsConfig
from rag_assets.tenants.model import Tenant


def runs_of(tenant: Tenant) -> tuple[RunsConfig, ...]:
    """Return a tenant's sources that store the events of runs, one for each repository."""
    return tuple(one for one in tenant.sources if isinstance(one, RunsConfig))


def readings(configs: Iterable[RunsConfig], path: str) -> Iterator[tuple[RunsConfig, str]]:
    """Yield what a path may refer to: its first part may be a repository's name."""
    for config in configs:
        yield config, path
        if path.startswith(f"{config.of}/"):
            yield config, path.removeprefix(f"{config.of}/")


def named_documents(tenant: Tenant, paths: Iterable[str]) -> frozenset[str]:
    """Return the possible document ids of these paths, whether or not the documents exist."""
    configs = runs_of(tenant)
    return frozenset(document_id(c.of, p) for path in paths for c, p in readings(configs, path))


def documents_of(
    connection: Connection, tenant: Tenant, paths: Iterable[str], *, gone: bool = False
) -> frozenset[str]:
    """Return the ids of the documents that paths may refer to.

    Args:
        connection: a connection to the catalog.
        paths: paths within a repository, or as hits show them.
        gone: whether to include deleted documents.
    """
    columns = documents.c
    query = select(columns.document_id).where(
        columns.tenant == tenant.id, is_any_of(columns.document_id, named_documents(tenant, paths))
    )
    if not gone:
        query = query.where(columns.status != "DELETED")
    return frozenset(connection.scalars(query))
