"""The fact store of code memory: stores labels, relations, and derived routes and tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from sqlalchemy import Connection, Table

from rag_assets.ingest.chunking.model import Definition
from rag_assets.pipeline.context import Share, TenantContext
from rag_assets.pipeline.fact_stores import DerivedWork, Kinds, StoreRepair
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.documents.versions import RowRecorder
from rag_assets.systems.code_memory.catalog.code_catalog import code_catalog
from rag_assets.systems.code_memory.catalog.relation_rows import record_relations
from rag_assets.systems.code_memory.catalog.tables import document_kinds, edges, name_uses, symbols
from rag_assets.systems.code_memory.pipeline.derived_marks import derived_configs
from rag_assets.systems.code_memory.pipeline.deriving import (
    derive_documents,
    explain_outdated_derivations,
)
from rag_assets.systems.code_memory.pipeline.labelling import label_documents, relations_of_texts
from rag_assets.systems.code_memory.pipeline.relation_drift import repair_relations
from rag_assets.systems.code_memory.symbols.source_types import source_type_of
from rag_assets.tenants.model import Tenant

if TYPE_CHECKING:
    from rag_assets.pipeline.slices import Work


class CodeFacts:
    """Stores what follows from the facts of source code; see FactStore."""

    tables: Sequence[Table] = (document_kinds, symbols, edges, name_uses)

    def prepare(self, ctx: TenantContext, work: Work) -> None:
        """Label the documents of a slice with the kinds of their definitions."""
        label_documents(ctx, work)

    def kinds(self, ctx: TenantContext, document_ids: Sequence[str]) -> Mapping[str, Kinds]:
        """Return the kinds of definitions, by document."""
        return code_catalog(ctx.catalog).kinds.of(ctx.ref.id, document_ids)

    def chunk_type(self, definition: Definition, kinds: Kinds, source_type: str) -> str:
        """Return the source type of a chunk, such as controller or migration."""
        return source_type_of(definition.role, definition.symbol, kinds, source_type)

    def recorder(self, ctx: TenantContext, media_types: Mapping[str, str]) -> RowRecorder:
        """Return an object that records the definitions and relations of texts."""
        relations = relations_of_texts(ctx, media_types)

        def record(connection: Connection, ref: TenantRef, texts: Collection[str]) -> None:
            kept = {key: found for key, found in relations.items() if key in texts}
            record_relations(connection, ref, kept)

        return record

    def finish(self, ctx: TenantContext) -> DerivedWork:
        """Derive documents again for sources with changed files."""
        derived = derive_documents(ctx)
        return DerivedWork(derived.changed, derived.lines)

    def unfinished(self, catalog: Catalog, tenant: Tenant, generation: int) -> str | None:
        """Return why routes and tables must be derived again; None if they are up to date."""
        return explain_outdated_derivations(catalog, tenant, generation)

    def derives_from(self, tenant: Tenant, source: str) -> bool:
        """Return whether routes and tables are derived from a source."""
        return source in derived_configs(tenant)

    def withdraw(self, ctx: TenantContext, source: str) -> None:
        """Withdraw derived routes and tables that would show a source's files to former readers."""
        derived = derived_configs(ctx.tenant)[source].name
        code_catalog(ctx.catalog).derivations.withdraw(ctx.ref, source, derived)

    def repair(self, ctx: TenantContext, share: Share) -> StoreRepair:
        """Repair relations and derived documents that differ from the facts in the lake."""
        drift = repair_relations(ctx, share)
        wrong = len(drift.altered) + drift.nobodys
        return StoreRepair("" if drift.none else str(drift), {"texts_with_other_relations": wrong})


FACTS = CodeFacts()
