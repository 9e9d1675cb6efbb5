"""Repair: bring lake and index in line with the catalog.

Only vectors that no store has are embedded again. Lost rows of the lake are recovered from its
other files and from the index.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from rag_assets.common.batches import batched
from rag_assets.common.errors import LakeDamaged
from rag_assets.common.formatting import format_count
from rag_assets.common.hashing import HashRange
from rag_assets.pipeline.context import DailyShare, TenantContext
from rag_assets.pipeline.drift import IndexState, inspect_index
from rag_assets.pipeline.fact_stores import StoreRepair, list_all_stores
from rag_assets.pipeline.generations import (
    ActiveBuild,
    drop_generation,
    find_active_builds,
    open_active_builds,
    publish,
)
from rag_assets.pipeline.index_comparison import has_unit_length
from rag_assets.pipeline.mark_keeper import may_delete
from rag_assets.pipeline.publishing import delete_leftover_entries, delete_removed_documents
from rag_assets.pipeline.separate_vectors import repair_vectors
from rag_assets.pipeline.source_contents import ContentsReport, compare_contents, mark_for_rereading
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.builds.lake_keys import NeededVersion
from rag_assets.storage.index.model import EntryVector
from rag_assets.storage.lake.model import DamagedFile, LiveKeys
from rag_assets.storage.lake.store import TenantLake

_DOCUMENTS_AT_ONCE = 5_000
_CHUNKS_AT_ONCE = 100_000
_ITEMS_AT_ONCE = 2_000
_MAX_NAMED_FILES = 20


@dataclass(frozen=True, slots=True)
class Repair:
    """The differences that a repair found, as they were before it.

    Attributes:
        vectors_beside: number of builds whose separate vector store differed and was filled again.
    """

    states: tuple[IndexState, ...]
    lake: LakeDrift
    contents: ContentsReport
    stores: tuple[StoreRepair, ...] = ()
    vectors_beside: int = 0

    @property
    def is_healthy(self) -> bool:
        """Return whether no repair was needed."""
        altered = self.contents.altered or self.contents.gone
        sound = self.lake.is_empty and not altered and not self.vectors_beside
        sound = sound and not any(store.description for store in self.stores)
        return sound and all(state.is_healthy for state in self.states)

    def lines(self) -> list[str]:
        """Describe each repair in one line."""
        findings = [
            f"generation {state.generation.number}: {state.drift}"
            for state in self.states
            if not state.is_healthy
        ]
        if not self.lake.is_empty:
            findings.append(str(self.lake))
        findings += [store.description for store in self.stores if store.description]
        if self.vectors_beside:
            builds = format_count(self.vectors_beside, "build")
            findings.append(f"the separate vector stores of {builds} differed")
        if self.lake.to_embed:
            texts = format_count(self.lake.to_embed, "text")
            findings.append(f"{texts} will be embedded again, because no store has their vectors")
        if reread_count := len(self.contents.altered) + len(self.contents.gone):
            findings.append(f"{format_count(reread_count, 'document')} will be read again")
        return findings


def repair_tenant(ctx: TenantContext, share: DailyShare | None = None) -> Repair:
    """Repair a tenant's stores, or a share of their contents; the next sync does the rest."""
    share = share or DailyShare(1, ctx.clock.now().date())
    contents = compare_contents(ctx, share)
    if contents.altered or contents.gone:
        mark_for_rereading(ctx, [*contents.altered, *contents.gone])
    lake = repair_lake(ctx, share)
    states = repair_index(ctx, share)
    stores = tuple(store.repair(ctx, share) for store in list_all_stores())
    repair = Repair(tuple(states), lake, contents, stores, repair_vectors(ctx))
    ctx.catalog.events.write(ctx.ref, "index_repaired", [_summarize_repair(repair)])
    return repair


def repair_index(ctx: TenantContext, share: DailyShare | None = None) -> list[IndexState]:
    """Repair the drift that inspect_index finds; the next sync writes missing entries again.

    Nothing is deleted while the catalog may have been restored from an older dump.

    Returns:
        The state before the repair.
    """
    delete_removed_documents(ctx)
    delete_leftover_entries(ctx)
    states = inspect_index(ctx, share=share)
    builds = find_active_builds(ctx, [state.generation for state in states])
    for state in states:
        build = builds.get(state.generation.number)
        if build is not None and state.must_be_replaced:
            if may_delete(ctx):
                _replace_index(build)
        elif build is not None and not state.drift.is_empty:
            _repair_entries(ctx, state)
    for state in states:
        if state.generation.number not in builds:
            _repair_inactive_build(ctx, state)
    serving = ctx.catalog.generations.serving(ctx.ref.id)
    # While the catalog may have been restored from an older dump, a lost index is not replaced.
    if serving is not None and ctx.has_index(serving):
        ctx.guard()
        ctx.store.indexes.publish(serving.index_name, ctx.owner(serving))
    return states


def _repair_entries(ctx: TenantContext, state: IndexState) -> None:
    generation, drift = state.generation, state.drift
    ctx.guard()
    if generation.state in {"COMPLETE", "HELD"}:
        ctx.catalog.generations.reopen(ctx.ref, generation)
    wrong = [*drift.orphans, *drift.foreign]
    if wrong and may_delete(ctx):
        ctx.writer(generation).delete(generation.index_name, ctx.ref.id, wrong)
    ctx.catalog.index.invalidate(ctx.ref, generation.number, drift.damaged)


def _repair_inactive_build(ctx: TenantContext, state: IndexState) -> None:
    """Repair a build that no run brings up to date; delete it if it needs new entries.

    If such a build answers searches and its index still exists, its remaining entries are kept
    until another build answers.
    """
    generation, drift = state.generation, state.drift
    damaged = state.must_be_replaced or bool(drift.damaged)
    if not damaged:
        if not drift.is_empty:
            _repair_entries(ctx, state)
        return
    if generation.state == "SERVING":
        if not state.must_be_replaced:
            return  # The build's remaining entries are served until its successor is complete.
        publish(ctx, open_active_builds(ctx).wanted.generation)
    if may_delete(ctx):
        drop_generation(ctx, generation)


def _replace_index(build: ActiveBuild) -> None:
    ctx, generation = build.context, build.generation
    ctx.guard()
    spec, placement = ctx.index_spec(generation), ctx.tenant.index.placement
    index = ctx.store.indexes.place(spec, ctx.ref.id, placement)
    if generation.state in {"COMPLETE", "HELD"}:
        ctx.catalog.generations.reopen(ctx.ref, generation)
    ctx.catalog.index.reset(ctx.ref, generation.number)
    ctx.catalog.generations.move(ctx.ref, generation, index.name, index.identity)


def _summarize_repair(repair: Repair) -> dict[str, object]:
    return {
        "builds": [_summarize_build(state) for state in repair.states if not state.is_healthy],
        "files_of_the_lake": len(repair.lake.files),
        "documents_lost_by_the_lake": len(
            {id_ for lost in repair.lake.losses for id_ in lost.documents}
        ),
        "texts_to_embed": repair.lake.to_embed,
        **{name: figure for store in repair.stores for name, figure in store.figures.items()},
        "documents_to_read_again": len(repair.contents.altered) + len(repair.contents.gone),
    }


def _summarize_build(state: IndexState) -> dict[str, object]:
    drift = state.drift
    return {
        "generation": state.generation.number,
        "index_lost": state.index_lost,
        "alias_correct": state.alias_correct,
        "mapping_correct": state.fits,
        "missing_documents": len(drift.missing),
        "altered_documents": len(drift.altered),
        "altered_vectors": len(drift.vectors),
        "orphans": len(drift.orphans),
        "foreign": len(drift.foreign),
    }


@dataclass(frozen=True, slots=True)
class BuildLosses:
    """The rows that a build needs and that the lake has lost.

    Attributes:
        parsed, chunks, vectors: ids of documents with a missing text, chunk or vector.
        texts: text_sha256 of the missing vectors, for chunks that the lake still has.
    """

    generation: Generation
    parsed: frozenset[str] = frozenset()
    chunks: frozenset[str] = frozenset()
    vectors: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()

    @property
    def documents(self) -> frozenset[str]:
        """Return the ids of the documents with any missing row."""
        return self.parsed | self.chunks | self.vectors


@dataclass(frozen=True, slots=True)
class LakeDrift:
    """The difference between the rows that live builds need from the lake and the rows it has.

    Attributes:
        nowhere: text_sha256 of the texts whose vectors are neither in the lake nor in an index, by
            embedder_id; these texts have to be embedded again.
    """

    files: tuple[DamagedFile, ...] = ()
    losses: tuple[BuildLosses, ...] = ()
    nowhere: Mapping[str, frozenset[str]] = field(default_factory=dict)
    versions: int = 0

    @property
    def is_empty(self) -> bool:
        """Return whether the lake is complete."""
        return not (self.files or self.losses)

    @property
    def to_embed(self) -> int:
        """Return the number of texts to embed again."""
        return sum(map(len, self.nowhere.values()))

    def __str__(self) -> str:
        """Format the counts for a log line, which cannot hold thousands of ids."""
        lost = {id_ for of_build in self.losses for id_ in of_build.documents}
        return (
            f"{len(self.files):,} damaged files of the lake; documents of which something is"
            f" lacking: {len(lost):,}; texts to embed again: {self.to_embed:,}"
        )


def compare_lake(ctx: TenantContext, share: DailyShare) -> LakeDrift:
    """Compare the lake with the needs of the live builds; read-only.

    Only keys are compared. The files of the share are also read completely, to find damaged ones.
    """
    files = tuple(ctx.lake.find_damaged_files(share.hash_range))
    readable = ctx.lake.readable()
    losses, versions = [], 0
    for generation in ctx.catalog.generations.live(ctx.ref.id):
        if generation.state == "REMOVING":
            continue
        needed = ctx.catalog.lake_keys.list_needed(ctx.ref.id, generation.number)
        lost = BuildLosses(generation)
        for batch in batched(
            needed,
            _DOCUMENTS_AT_ONCE,
            weight=lambda version: version.chunk_count,
            max_weight=_CHUNKS_AT_ONCE,
        ):
            versions += len(batch)
            lost = _merge_losses(lost, _find_losses(readable, generation, batch))
        if lost.documents:
            losses.append(lost)
    nowhere = {
        embedder_id: lacking
        for embedder_id, texts in find_lacking_texts(losses).items()
        if (lacking := texts - find_texts_in_index(ctx, embedder_id, texts))
    }
    return LakeDrift(files, tuple(losses), nowhere, versions)


def find_lacking_texts(losses: Collection[BuildLosses]) -> dict[str, frozenset[str]]:
    """Return the text_sha256 of missing vectors, by embedder_id."""
    lacking: dict[str, frozenset[str]] = {}
    for lost in losses:
        embedder_id = lost.generation.embedder_id
        if lost.texts:
            lacking[embedder_id] = lacking.get(embedder_id, frozenset()) | lost.texts
    return lacking


def find_texts_in_index(ctx: TenantContext, embedder_id: str, texts: Collection[str]) -> set[str]:
    """Return which of these texts, given by hash, still have a vector in an index."""
    hashes: set[str] = set()
    for generation in list_builds(ctx, embedder_id):
        owner = ctx.owner(generation)
        entries = ctx.store.entries.vectors(generation.index_name, owner, texts)
        hashes |= {e.text_sha256 for e in entries if e.genuine and e.vector is not None}
    return hashes


def list_builds(ctx: TenantContext, embedder_id: str) -> list[Generation]:
    """Return the live builds with vectors of this embedder."""
    live = ctx.catalog.generations.live(ctx.ref.id)
    return [
        generation
        for generation in live
        if generation.embedder_id == embedder_id and generation.state != "REMOVING"
    ]


def _find_losses(
    lake: TenantLake, generation: Generation, versions: Collection[NeededVersion]
) -> BuildLosses:
    without_text = lake.find_missing_parsed({version.parse_key for version in versions})
    hashes = lake.read_chunk_hashes({version.chunk_set_key for version in versions})
    texts = {text for of_document in hashes.values() for text in of_document}
    without_vector = lake.find_missing_vectors(generation.embedder_id, texts)
    lost = [
        version
        for version in versions
        if len(hashes.get(version.chunk_set_key, ())) != version.chunk_count
    ]
    return BuildLosses(
        generation,
        parsed=frozenset(v.document_id for v in versions if v.parse_key in without_text),
        chunks=frozenset(version.document_id for version in lost),
        vectors=frozenset(
            version.document_id
            for version in (versions if without_vector else ())
            if not without_vector.isdisjoint(hashes.get(version.chunk_set_key, ()))
        ),
        texts=frozenset(without_vector),
    )


def _merge_losses(first: BuildLosses, second: BuildLosses) -> BuildLosses:
    return BuildLosses(
        first.generation,
        first.parsed | second.parsed,
        first.chunks | second.chunks,
        first.vectors | second.vectors,
        first.texts | second.texts,
    )


def repair_lake(ctx: TenantContext, share: DailyShare) -> LakeDrift:
    """Restore the rows that the live builds need in the lake, without embedding any text.

    Damaged files are removed from their tables. Lost rows are first recovered from files that no
    table lists; vectors that are still missing are recovered from the index. The next sync computes
    the rest again: texts and chunks from the sources, and vectors with the embedder.

    Returns:
        The state before the repair.
    """
    comparison = compare_lake(ctx, share)
    if comparison.is_empty:
        return comparison
    ctx.lake.drop_damaged(comparison.files)
    _recover_unlisted_rows(ctx)
    remaining = compare_lake(ctx, share)
    chunks_lost = any(lost.chunks for lost in remaining.losses)
    lacking = find_lacking_texts(remaining.losses)
    for embedder_id in {lost.generation.embedder_id for lost in remaining.losses}:
        texts = lacking.get(embedder_id, frozenset())
        if chunks_lost:
            # Without the lost chunks, only the index entries show which texts these chunks had.
            _recover_all_vectors(ctx, embedder_id, remaining.versions)
        elif texts:
            _recover_vectors(ctx, embedder_id, texts)
    for lost in compare_lake(ctx, share).losses:
        ctx.guard()
        if lost.generation.state in {"COMPLETE", "HELD"}:
            ctx.catalog.generations.reopen(ctx.ref, lost.generation)
        ctx.catalog.index.invalidate(ctx.ref, lost.generation.number, sorted(lost.documents))
    return comparison


def heal_lake(ctx: TenantContext, damage: LakeDamaged) -> None:
    """Repair files of the lake that a stage could not read, so that the stage can run again."""
    ctx.log(f"{damage.message}; it is repaired, and the step is run again")
    comparison = repair_lake(ctx, DailyShare(1, ctx.clock.now().date()))
    files = [f"{file.table}/{file.path} ({file.fault})" for file in comparison.files]
    event = {"files": files[:_MAX_NAMED_FILES], "texts_to_embed": comparison.to_embed}
    ctx.catalog.events.write(ctx.ref, "lake_healed", [event])


def _recover_unlisted_rows(ctx: TenantContext) -> None:
    """Recover rows from files that no table lists, for every build with missing rows."""
    for generation in ctx.catalog.generations.live(ctx.ref.id):
        for batch in batched(
            ctx.catalog.lake_keys.list_needed(ctx.ref.id, generation.number), _ITEMS_AT_ONCE
        ):
            parsed = ctx.lake.find_missing_parsed({version.parse_key for version in batch})
            sets = {version.chunk_set_key for version in batch}
            ctx.lake.salvage(
                LiveKeys(parsed=parsed, chunk_sets=ctx.lake.find_missing_chunk_sets(sets)),
                generation.embedder_id,
                generation.dimensions,
            )
            hashes = ctx.lake.read_chunk_hashes(sets)
            texts = {text for of_document in hashes.values() for text in of_document}
            lacking = ctx.lake.find_missing_vectors(generation.embedder_id, texts)
            ctx.lake.salvage(LiveKeys(texts=lacking), generation.embedder_id, generation.dimensions)


def _recover_vectors(ctx: TenantContext, embedder_id: str, texts: Collection[str]) -> None:
    """Copy the missing vectors of these texts from the index to the lake."""
    missing = set(texts)
    for generation in list_builds(ctx, embedder_id):
        for batch in batched(sorted(missing), _ITEMS_AT_ONCE):
            entries = ctx.store.entries.vectors(generation.index_name, ctx.owner(generation), batch)
            missing -= _append_vectors(ctx, embedder_id, generation.dimensions, entries)


def _recover_all_vectors(ctx: TenantContext, embedder_id: str, versions: int) -> None:
    """Copy all vectors that the lake lacks from the index, in parts.

    The number of parts grows with `versions`, or with the number of entries if that is larger.
    """
    for generation in list_builds(ctx, embedder_id):
        entries = ctx.catalog.index.entry_count(ctx.ref.id, generation.number)
        for hashes in HashRange().parts(1 + max(entries, versions) // _ITEMS_AT_ONCE):
            vectors = ctx.store.entries.vectors(
                generation.index_name, ctx.owner(generation), hashes
            )
            _append_vectors(ctx, embedder_id, generation.dimensions, vectors)


def _append_vectors(
    ctx: TenantContext, embedder_id: str, dimensions: int, entries: Iterable[EntryVector]
) -> set[str]:
    """Append the vectors of unaltered entries to the lake; return their text_sha256."""
    import numpy as np

    vectors = {
        entry.text_sha256: entry.vector
        for entry in entries
        if entry.genuine
        and entry.vector is not None
        and entry.vector.shape == (dimensions,)
        and has_unit_length(entry.vector)
    }
    lacking = sorted(ctx.lake.find_missing_vectors(embedder_id, vectors.keys()))
    if lacking:
        stacked = np.stack([vectors[text] for text in lacking])
        ctx.lake.append_vectors(embedder_id, lacking, stacked)
    return set(lacking)
