"""The fact store of code memory: stores labels, relations, and derived routes and tables.

It also compares relations in the catalog with the facts in the lake, and repairs them. Symbols and
edges come from single texts, derived documents from all files of a repository. The lake's own
comparison finds a lost fact. Relations that follow from that fact are compared after the fact is
restored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection, Table

from rag_assets.common.batches import batched
from rag_assets.common.formatting import format_count
from rag_assets.ingest.chunking.model import Definition
from rag_assets.pipeline.context import Share, TenantContext
from rag_assets.pipeline.fact_stores import DerivedWork, Kinds, StoreRepair
from rag_assets.pipeline.mark_keeper import may_delete
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.documents.versions import RowRecorder
from rag_assets.systems.code_memory.catalog.code_catalog import code_catalog
from rag_assets.systems.code_memory.catalog.derivations import DerivedRecords
from rag_assets.systems.code_memory.catalog.relation_rows import (
    IndexedText,
    record_relations,
    rows_to_record,
)
from rag_assets.systems.code_memory.catalog.tables import document_kinds, edges, name_uses, symbols
from rag_assets.systems.code_memory.chunker import reads_code
from rag_assets.systems.code_memory.pipeline.deriving import (
    derivations_as_recorded,
    derive_documents,
    explain_outdated_derivations,
)
from rag_assets.systems.code_memory.pipeline.labelling import (
    derived_configs,
    label_documents,
    relations_of_texts,
)
from rag_assets.systems.code_memory.relations.relations import Relations
from rag_assets.systems.code_memory.symbols.source_types import get_source_type
from rag_assets.tenants.model import Tenant

if TYPE_CHECKING:
    from rag_assets.pipeline.slices import Work

_BATCH: Final = 500


@dataclass(frozen=True, slots=True)
class RelationDrift:
    """The difference between recorded relations and the indexed texts.

    Attributes:
        compared: number of texts whose rows were compared.
        altered: ids of documents whose text has wrong rows.
        orphans: texts that have rows but belong to no build.
        derived: number of derived documents that differ from those that the files yield, by source.
    """

    compared: int = 0
    altered: tuple[str, ...] = ()
    orphans: int = 0
    derived: Mapping[str, int] | None = None

    @property
    def none(self) -> bool:
        """Return whether all relations are correct."""
        return not (self.altered or self.orphans or self.derived)

    def __str__(self) -> str:
        """Return the differences in words."""
        found = [f"relations of {format_count(len(self.altered), 'text')}"] if self.altered else []
        if self.orphans:
            found.append(
                f"relations of {format_count(self.orphans, 'text')} that no build contains"
            )
        for source, number in (self.derived or {}).items():
            found.append(f"{format_count(number, 'document')} derived from {source}")
        return ", ".join(found)


def compare_relations(ctx: TenantContext, share: Share) -> RelationDrift:
    """Compare the rows of a share of the texts, and all derived documents; read-only."""
    return _compare_share(ctx, share, mend=False)


def repair_relations(ctx: TenantContext, share: Share) -> RelationDrift:
    """Repair the differences that compare_relations finds; return those differences.

    Rows of a text are replaced in one transaction; the next sync lists derived documents.
    """
    return _compare_share(ctx, share, mend=True)


def _compare_share(ctx: TenantContext, share: Share, *, mend: bool) -> RelationDrift:
    if not reads_code(ctx.tenant):
        return RelationDrift()
    rows = code_catalog(ctx.catalog).relation_drift
    compared = 0
    altered: list[str] = []
    for batch in batched(rows.texts(ctx.ref.id, share.hashes), _BATCH):
        texts = {one.chunk_set_key: one for one in batch}
        compared += len(texts)
        wrong = _find_differing_relations(ctx, texts)
        altered += (texts[key].document_id for key in wrong)
        if mend and wrong:
            ctx.guard()
            rows.replace_rows(ctx.ref, wrong)
    orphans = rows.orphaned_texts(ctx.ref.id)
    derived = {one.of: (number, one) for number, one in _find_differing_derivations(ctx)}
    # If the catalog may have been reset to an earlier state, these rows may be the only ones left.
    if mend and may_delete(ctx):
        _repair_other_rows(ctx, orphans, [one for _, one in derived.values()])
    numbers = {source: number for source, (number, _) in derived.items()}
    return RelationDrift(compared, tuple(sorted(altered)), len(orphans), numbers)


def _find_differing_relations(
    ctx: TenantContext, texts: Mapping[str, IndexedText]
) -> dict[str, Relations]:
    """Return the relations of those texts whose recorded rows differ from the relations."""
    lost = ctx.lake.missing_chunk_sets(texts)
    readable = {key: one.media_type for key, one in texts.items() if key not in lost}
    stated = relations_of_texts(ctx, readable)
    wanted = rows_to_record(ctx.ref, stated)
    recorded = code_catalog(ctx.catalog).relation_drift.recorded(ctx.ref.id, readable)
    nothing: frozenset[tuple[object, ...]] = frozenset()
    return {
        key: stated.get(key, Relations((), ()))
        for key in readable
        if wanted.get(key, nothing) != recorded.get(key, nothing)
    }


def _find_differing_derivations(ctx: TenantContext) -> Iterator[tuple[int, DerivedRecords]]:
    for one in derivations_as_recorded(ctx):
        number = code_catalog(ctx.catalog).derivations.differing(ctx.ref, one)
        if number:
            yield number, one


def _repair_other_rows(
    ctx: TenantContext, orphans: Collection[str], derived: Collection[DerivedRecords]
) -> None:
    code = code_catalog(ctx.catalog)
    if orphans:
        ctx.guard()
        code.relation_drift.replace_rows(ctx.ref, dict.fromkeys(orphans, Relations((), ())))
    for one in derived:
        ctx.guard()
        code.derivations.record(ctx.ref, one)


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
        return get_source_type(definition.role, definition.symbol, kinds, source_type)

    def recorder(self, ctx: TenantContext, media_types: Mapping[str, str]) -> RowRecorder:
        """Return an object that records the definitions and relations of texts."""
        relations = relations_of_texts(ctx, media_types)

        def record(connection: Connection, ref: TenantRef, texts: Collection[str]) -> None:
            kept = {key: found for key, found in relations.items() if key in texts}
            record_relations(connection, ref, kept)

        return record

    def finish(self, ctx: TenantContext) -> DerivedWork:
        """Derive documents again for sources with changed files."""
        return derive_documents(ctx)

    def unfinished(self, catalog: Catalog, tenant: Tenant, generation: int) -> str | None:
        """Return why routes and tables must be derived again; None if they are up to date."""
        return explain_outdated_derivations(catalog, tenant, generation)

    def uses_source(self, tenant: Tenant, source: str) -> bool:
        """Return whether routes and tables are derived from a source."""
        return source in derived_configs(tenant)

    def withdraw(self, ctx: TenantContext, source: str) -> None:
        """Withdraw derived routes and tables that would show a source's files to former readers."""
        derived = derived_configs(ctx.tenant)[source].name
        code_catalog(ctx.catalog).derivations.withdraw(ctx.ref, source, derived)

    def repair(self, ctx: TenantContext, share: Share) -> StoreRepair:
        """Repair relations and derived documents that differ from the facts in the lake."""
        drift = repair_relations(ctx, share)
        wrong = len(drift.altered) + drift.orphans
        return StoreRepair("" if drift.none else str(drift), {"texts_with_other_relations": wrong})


FACTS = CodeFacts()
