"""Fact stores and follow-ups: data that systems derive from a tenant's documents.

A chunker may return facts besides passages, such as which name a line defines. The lake keeps these
facts. A system registers a `FactStore` under the name of its chunker. The store keeps what it
derives from the facts of all indexed texts: types of passages, rows of its own tables, further
documents.

A system names a `FollowUp` in its description. It runs at the end of each run over a slice, under
the tenant's lock, no matter who requested the run. A tenant is due for a run while its follow-up is
unfinished.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from sqlalchemy import Table

from rag_assets.ingest.chunking.model import Definition
from rag_assets.pipeline.context import DailyShare, TenantContext
from rag_assets.plugins.registry import Systems, installed_systems, load_reference
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.documents.versions import RowRecorder
from rag_assets.tenants.model import Tenant

if TYPE_CHECKING:
    from rag_assets.pipeline.slices import SliceWork


Kinds: TypeAlias = Mapping[str, str]
"""The kinds of the definitions in one document, by name."""


@dataclass(frozen=True, slots=True)
class DerivedWork:
    """The number of derived documents that changed, and figures for the run's page."""

    changed: int = 0
    lines: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StoreRepair:
    """The differences that a fact store repaired: in words ("" without any) and as counts."""

    description: str = ""
    figures: Mapping[str, int] = field(default_factory=dict)


class FactStore(Protocol):
    """Keeps data derived from the facts in a tenant's texts."""

    @property
    def tables(self) -> Sequence[Table]:
        """Return the store's tables; Postgres runs ANALYZE on them after large writes."""

    def prepare(self, ctx: TenantContext, work: SliceWork) -> None:
        """Determine the kinds of the definitions in a slice, before its documents are published."""

    def kinds(self, ctx: TenantContext, document_ids: Sequence[str]) -> Mapping[str, Kinds]:
        """Return the kinds of the definitions in each document; the indexed_key depends on them."""

    def chunk_type(self, definition: Definition, kinds: Kinds, source_type: str) -> str:
        """Return the source type of a chunk that contains a definition."""

    def recorder(self, ctx: TenantContext, media_types: Mapping[str, str]) -> RowRecorder:
        """Return the recorder that stores a text's facts when a version with it is published."""

    def finish(self, ctx: TenantContext) -> DerivedWork:
        """Derive further documents from the facts of all files."""

    def unfinished(self, catalog: Catalog, tenant: Tenant, generation: int) -> str | None:
        """Return why a tenant needs a run although no document is pending, or None."""

    def uses_source(self, tenant: Tenant, source: str) -> bool:
        """Return whether the store derives documents from this source."""

    def withdraw(self, ctx: TenantContext, source: str) -> None:
        """Delete the documents derived from a source, because its access scope has changed."""

    def repair(self, ctx: TenantContext, share: DailyShare) -> StoreRepair:
        """Repair rows and derived documents that differ from the facts in the lake."""


def list_all_stores() -> Iterable[FactStore]:
    """Return the fact stores of all systems."""
    return _load_stores(installed_systems()).values()


def list_fact_stores(tenant: Tenant) -> list[FactStore]:
    """Return the fact stores for the chunkers of a tenant."""
    if not tenant.reads_facts:
        return []
    stores = _load_stores(installed_systems())
    return [stores[name] for name in tenant.fact_readers if name in stores]


def find_kinds(ctx: TenantContext, document_ids: Sequence[str]) -> dict[str, Kinds]:
    """Return the kinds of definitions that the tenant's stores know, by document."""
    kinds: dict[str, Kinds] = {}
    for store in list_fact_stores(ctx.tenant):
        kinds |= store.kinds(ctx, document_ids)
    return kinds


def derive_documents(ctx: TenantContext) -> DerivedWork:
    """Let all fact stores derive further documents; return the sum of their work."""
    derivations = [store.finish(ctx) for store in list_all_stores()]
    lines = {name: line for work in derivations for name, line in work.lines.items()}
    return DerivedWork(sum(work.changed for work in derivations), lines)


def find_unfinished_derivation(catalog: Catalog, tenant: Tenant, generation: int) -> str | None:
    """Return why a tenant needs a run to derive data; None if it needs none."""
    reasons = (store.unfinished(catalog, tenant, generation) for store in list_all_stores())
    return next(filter(None, reasons), None)


@lru_cache(maxsize=4)
def _load_stores(systems: Systems) -> Mapping[str, FactStore]:
    return systems.load("fact_stores")


class FollowUp(Protocol):
    """Work that a system does after documents were published."""

    def unfinished(self, catalog: Catalog, tenant_id: str) -> str | None:
        """Return why a tenant needs a run although no source changed; None if it needs none."""

    def kept_texts(self, catalog: Catalog, tenant_id: str) -> frozenset[str]:
        """Return the hashes of texts other than chunks; the lake must keep their vectors."""

    def finish(self, ctx: TenantContext, serving: Generation) -> Mapping[str, Any]:
        """Do as much of the remaining work as is possible; return results for the run's page."""


def find_unfinished_follow_up(profile: str, catalog: Catalog, tenant_id: str) -> str | None:
    """Return why a tenant of this profile needs a run although no source changed, or None."""
    follow_up = _load_follow_up(profile)
    return None if follow_up is None else follow_up.unfinished(catalog, tenant_id)


def list_follow_up_texts(ctx: TenantContext) -> frozenset[str]:
    """Return the hashes of texts that are not chunks, and whose vectors the system still needs."""
    follow_up = _load_follow_up(ctx.tenant.profile)
    return frozenset() if follow_up is None else follow_up.kept_texts(ctx.catalog, ctx.ref.id)


def run_follow_up(ctx: TenantContext) -> Mapping[str, Any]:
    """Run the follow-up of the tenant's system; return its results for the run's page."""
    follow_up = _load_follow_up(ctx.tenant.profile)
    serving = None if follow_up is None else ctx.catalog.generations.serving(ctx.ref.id)
    if follow_up is None or serving is None:
        return {}
    return follow_up.finish(ctx, serving)


@lru_cache
def _load_follow_up(profile: str) -> FollowUp | None:
    system = next(
        (installed.system for installed in installed_systems() if installed.name == profile), None
    )
    if system is None or system.follow_up is None:
        return None
    follow_up: FollowUp = load_reference(system.follow_up)
    return follow_up
