"""Repair of the lake: recovers lost rows from its other files and from the index."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from rag_assets.common.batches import batched
from rag_assets.common.errors import LakeDamaged
from rag_assets.common.hashing import HashRange
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.lake_drift import (
    LakeDrift,
    builds_of,
    compare_lake,
    lacking_texts,
)
from rag_assets.pipeline.shares import Share
from rag_assets.pipeline.vector_drift import is_sound
from rag_assets.storage.index.model import EntryVector
from rag_assets.storage.lake.model import LiveKeys

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_AT_ONCE = 2_000
_FILES_NAMED = 20


def repair_lake(ctx: TenantContext, share: Share) -> LakeDrift:
    """Restore the rows that the live builds need in the lake, without embedding any text.

    Damaged files are removed from their tables. Lost rows are first recovered from files that no
    table lists; vectors that are still missing are recovered from the index. The next sync computes
    the rest again: texts and chunks from the sources, and vectors with the embedder.

    Returns:
        The state before the repair.
    """
    found = compare_lake(ctx, share)
    if found.none:
        return found
    ctx.lake.damage.drop(found.files)
    _salvage(ctx)
    left = compare_lake(ctx, share)
    chunks_lost = any(lost.chunks for lost in left.losses)
    lacking = lacking_texts(left.losses)
    for embedder_id in {lost.generation.embedder_id for lost in left.losses}:
        texts = lacking.get(embedder_id, frozenset())
        if chunks_lost:
            # Without the lost chunks, only the index entries show which texts these chunks had.
            _take_all_back(ctx, embedder_id, left.versions)
        elif texts:
            _take_back(ctx, embedder_id, texts)
    for lost in compare_lake(ctx, share).losses:
        ctx.guard()
        if lost.generation.state in {"COMPLETE", "HELD"}:
            ctx.catalog.generations.reopen(ctx.ref, lost.generation)
        ctx.catalog.index.invalidate(ctx.ref, lost.generation.number, sorted(lost.documents))
    return found


def heal_lake(ctx: TenantContext, damage: LakeDamaged) -> None:
    """Repair the files that a stage could not read, so that the stage can be run again.

    Args:
        ctx: the tenant's context; the caller holds the tenant's lock.
        damage: the damage that the stage found.
    """
    ctx.log(f"{damage.message}; it is repaired, and the step is run again")
    found = repair_lake(ctx, Share(1, ctx.clock.now().date()))
    files = [f"{file.table}/{file.path} ({file.fault})" for file in found.files]
    event = {"files": files[:_FILES_NAMED], "texts_to_embed": found.to_embed}
    ctx.catalog.events.write(ctx.ref, "lake_healed", [event])


def _salvage(ctx: TenantContext) -> None:
    """Recover rows from files that no table lists, for every build with missing rows."""
    for generation in ctx.catalog.generations.live(ctx.ref.id):
        for batch in batched(
            ctx.catalog.lake_keys.list_needed(ctx.ref.id, generation.number), _AT_ONCE
        ):
            parsed = ctx.lake.missing_parsed({version.parse_key for version in batch})
            sets = {version.chunk_set_key for version in batch}
            ctx.lake.damage.salvage(
                LiveKeys(parsed=parsed, chunk_sets=ctx.lake.missing_chunk_sets(sets)),
                generation.embedder_id,
                generation.dimensions,
            )
            hashes = ctx.lake.chunk_hashes(sets)
            texts = {text for of_document in hashes.values() for text in of_document}
            lacking = ctx.lake.missing_vectors(generation.embedder_id, texts)
            ctx.lake.damage.salvage(
                LiveKeys(texts=lacking), generation.embedder_id, generation.dimensions
            )


def _take_back(ctx: TenantContext, embedder_id: str, texts: Collection[str]) -> None:
    """Append missing vectors to the lake, from the entries of these texts."""
    left = set(texts)
    for generation in builds_of(ctx, embedder_id):
        for batch in batched(sorted(left), _AT_ONCE):
            entries = ctx.store.entries.vectors(generation.index_name, ctx.owner(generation), batch)
            left -= _append(ctx, embedder_id, generation.dimensions, entries)


def _take_all_back(ctx: TenantContext, embedder_id: str, versions: int) -> None:
    """Append every vector that an entry has and the lake lacks."""
    for generation in builds_of(ctx, embedder_id):
        entries = ctx.catalog.index.entry_count(ctx.ref.id, generation.number)
        for hashes in HashRange().parts(1 + max(entries, versions) // _AT_ONCE):
            found = ctx.store.entries.vectors(generation.index_name, ctx.owner(generation), hashes)
            _append(ctx, embedder_id, generation.dimensions, found)


def _append(
    ctx: TenantContext, embedder_id: str, dimensions: int, entries: Iterable[EntryVector]
) -> set[str]:
    """Append the vectors of unaltered entries to the lake; return their text_sha256."""
    import numpy as np

    vectors = {
        entry.text_sha256: entry.vector
        for entry in entries
        if entry.genuine and entry.vector is not None and _fits(entry.vector, dimensions)
    }
    lacking = sorted(ctx.lake.missing_vectors(embedder_id, vectors.keys()))
    if lacking:
        stacked = np.stack([vectors[text] for text in lacking])
        ctx.lake.append_vectors(embedder_id, lacking, stacked)
    return set(lacking)


def _fits(vector: npt.NDArray[np.float32], dimensions: int) -> bool:
    return vector.shape == (dimensions,) and is_sound(vector)
