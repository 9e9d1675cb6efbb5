"""Code memory as a Python object, and requests to index files again or remove them from the index.

The object is for programs that use an installation without its API.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from anyio.to_thread import run_sync
from pydantic import ValidationError

from rag_assets.api.run_responses import IndexedProject, InvalidatedFiles, RetrievedChunks
from rag_assets.common.errors import ConfigurationError, InvalidRequest, ListingFailed
from rag_assets.common.invalid_values import describe_problem
from rag_assets.common.settings import Settings
from rag_assets.pipeline.source_listing import open_sources
from rag_assets.search.model import Caller
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.systems.code_memory.retrieval.walk import Walker
from rag_assets.systems.code_memory.run_retrieval import RetrievalQuestion, RunRetrieval
from rag_assets.systems.code_memory.runs import Runs, build_document_ids, select_document_ids
from rag_assets.systems.code_memory.sources.git import GitSource
from rag_assets.tenants.model import Tenant

if TYPE_CHECKING:
    from rag_assets.search import AsyncRetriever


def request_reindexing(
    catalog: Catalog, settings: Settings, record: TenantRecord, paths: Sequence[str], *, by: str
) -> IndexedProject:
    """Request that documents are read, parsed and indexed again; existing embeddings are reused.

    Files that `invalidate` removed return. Deleted or purged files, and files past their retention,
    do not return. New files are listed soon.

    Args:
        paths: paths of files, within a repository or as hits show them; empty for all documents.

    Raises:
        TenantGone: the tenant was removed.
    """
    tenant = Tenant.from_config(record.config)
    commits = _read_commits(catalog, settings, tenant)
    requests = catalog.reindex_requests
    if paths:
        ids = catalog.database.fetch_values(select_document_ids(tenant, paths))
        documents = sum(
            requests.request_document(record.ref, document_id, by) for document_id in sorted(ids)
        )
        documents += requests.readmit(record.ref, build_document_ids(tenant, paths))
    else:
        documents = requests.request_tenant(record.ref, by) + requests.readmit(record.ref)
    # Announce the request even if no document is known: a listing must find new files.
    catalog.changes.notify([record.id])
    commit = next(iter(commits.values())) if len(commits) == 1 else None
    return IndexedProject(record.id, commit, commits, documents)


def invalidate(
    catalog: Catalog, record: TenantRecord, paths: Sequence[str], *, by: str
) -> InvalidatedFiles:
    """Remove files from the index until they change or request_reindexing names them.

    Raises:
        OnHold: one of the files is on hold.
        TenantGone: the tenant was removed.
    """
    query = select_document_ids(Tenant.from_config(record.config), paths)
    ids = catalog.database.fetch_values(query)
    remove = partial(catalog.removals.remove, record.ref, by=by, invalidate=True)
    return InvalidatedFiles(
        record.id, sum(bool(remove(document_id)) for document_id in sorted(ids))
    )


def _read_commits(catalog: Catalog, settings: Settings, tenant: Tenant) -> dict[str, str | None]:
    """Return the current commit of each Git repository by source; None if it cannot be read."""
    commits: dict[str, str | None] = {}
    try:
        sources = open_sources(tenant, settings, catalog)
    except ConfigurationError:
        return commits
    for source in sources:
        if isinstance(source, GitSource):
            try:
                commits[source.name] = source.describe().commit
            except ListingFailed:
                commits[source.name] = None
    return commits


class CodeMemory:
    """The code memory of one tenant, limited to documents that the caller may read.

    Args:
        tenant_id: a tenant of the profile code-memory.
        caller: the caller; by default only public documents are found.
    """

    def __init__(
        self,
        catalog: Catalog,
        settings: Settings,
        search: AsyncRetriever,
        tenant_id: str,
        caller: Caller | None = None,
    ) -> None:
        self._catalog, self._settings = catalog, settings
        self._retrieval = RunRetrieval(search, Walker(catalog, search.policy))
        self._tenant_id = tenant_id
        self._caller = caller or Caller()
        self._by = self._caller.name or "a program"

    async def retrieve(
        self, query: str, options: Mapping[str, Any] | None = None, *, run: str | None = None
    ) -> RetrievedChunks:
        """Return the passages for the prompt of a run, or for a question outside a run.

        Raises:
            InvalidRequest: the query or an option cannot be used; names the field.
            UnknownTenant, UnknownRun: the tenant or the run does not exist.
            ProviderError, ServiceUnavailable: see AsyncRetriever.search.
        """
        values = {"query": query, "run": run, "options": dict(options or {})}
        try:
            question = RetrievalQuestion.model_validate(values)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            raise InvalidRequest(
                f"the question is not valid: {describe_problem(first)}", hint="correct that field"
            ) from None
        record = await run_sync(self._catalog.tenants.get, self._tenant_id)
        runs = Runs(self._catalog.database)
        asking = None if run is None else await run_sync(runs.get, self._tenant_id, run)
        return await self._retrieval.retrieve(record, asking, question, self._caller)

    def index_file(self, path: str) -> IndexedProject:
        """Request that a file is read and indexed again; a file not yet indexed is listed soon."""
        return self.reindex([path])

    def reindex(self, paths: Sequence[str] = ()) -> IndexedProject:
        """Request that files, or everything, are read and indexed again; see request_reindexing."""
        record = self._catalog.tenants.get(self._tenant_id)
        return request_reindexing(self._catalog, self._settings, record, paths, by=self._by)

    def invalidate(self, path: str) -> InvalidatedFiles:
        """Remove a file from the index until it changes or is requested again."""
        record = self._catalog.tenants.get(self._tenant_id)
        return invalidate(self._catalog, record, [path], by=self._by)
