"""Compares the relations of source code in the catalog with the facts in the lake; repairs them.

Symbols and edges come from single texts, derived documents from all files of a repository. The
lake's own comparison finds a lost fact. Relations that follow from that fact are compared after the
fact is restored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from rag_assets.common.batches import batched
from rag_assets.common.formatting import counted
from rag_assets.pipeline.context import Share, TenantContext
from rag_assets.pipeline.mark_keeper import may_delete
from rag_assets.systems.code_memory.catalog.code_catalog import code_catalog
from rag_assets.systems.code_memory.catalog.derivations import DerivedRecords
from rag_assets.systems.code_memory.catalog.relation_drift import IndexedText, rows_to_record
from rag_assets.systems.code_memory.chunker import reads_code
from rag_assets.systems.code_memory.pipeline.deriving import derivations_as_recorded
from rag_assets.systems.code_memory.pipeline.labelling import relations_of_texts
from rag_assets.systems.code_memory.relations.relations import Relations

_BATCH: Final = 500


@dataclass(frozen=True, slots=True)
class RelationDrift:
    """The difference between recorded relations and the indexed texts.

    Attributes:
        compared: number of texts whose rows were compared.
        altered: ids of documents whose text has wrong rows.
        nobodys: texts that have rows but belong to no build.
        derived: number of derived documents that differ from those that the files yield, by source.
    """

    compared: int = 0
    altered: tuple[str, ...] = ()
    nobodys: int = 0
    derived: Mapping[str, int] | None = None

    @property
    def none(self) -> bool:
        """Return whether all relations are correct."""
        return not (self.altered or self.nobodys or self.derived)

    def __str__(self) -> str:
        """Return the differences in words."""
        found = [f"relations of {counted(len(self.altered), 'text')}"] if self.altered else []
        if self.nobodys:
            found.append(f"relations of {counted(self.nobodys, 'text')} that no build contains")
        for source, number in (self.derived or {}).items():
            found.append(f"{counted(number, 'document')} derived from {source}")
        return ", ".join(found)


def compare_relations(ctx: TenantContext, share: Share) -> RelationDrift:
    """Compare the rows of a share of the texts, and all derived documents; read-only.

    Args:
        share: the share of the texts to process, selected by their chunk_set_key.
    """
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
    nobodys = rows.nobodys(ctx.ref.id)
    derived = {one.of: (number, one) for number, one in _find_differing_derivations(ctx)}
    # If the catalog may have been reset to an earlier state, these rows may be the only ones left.
    if mend and may_delete(ctx):
        _repair_other_rows(ctx, nobodys, [one for _, one in derived.values()])
    numbers = {source: number for source, (number, _) in derived.items()}
    return RelationDrift(compared, tuple(sorted(altered)), len(nobodys), numbers)


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
    ctx: TenantContext, nobodys: Collection[str], derived: Collection[DerivedRecords]
) -> None:
    code = code_catalog(ctx.catalog)
    if nobodys:
        ctx.guard()
        code.relation_drift.replace_rows(ctx.ref, dict.fromkeys(nobodys, Relations((), ())))
    for one in derived:
        ctx.guard()
        code.derivations.record(ctx.ref, one)
