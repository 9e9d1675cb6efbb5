"""Drift: compare the live index with the catalog, and the index's vectors with the lake.

`inspect_index` compares entry by entry; `find_index_differences` compares only counts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

from rag_assets.common.errors import BuildNotWritable
from rag_assets.pipeline.context import DailyShare, TenantContext, build_index_ref, build_owner
from rag_assets.pipeline.generations import is_alias_right
from rag_assets.pipeline.index_comparison import (
    Drift,
    VectorDrift,
    compare_entries,
    compare_index,
    find_suspects,
)
from rag_assets.pipeline.mark_keeper import CatalogMarkKeeper
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.documents.versions import ExpectedEntries, HeldVersion
from rag_assets.storage.index.model import BuildCount, CountedBuild, Presence, ScannedEntry
from rag_assets.storage.index.store import VectorStore


@dataclass(frozen=True, slots=True)
class IndexState:
    """The state of one build's index, compared with the catalog.

    Attributes:
        alias_correct: whether the tenant's alias shows exactly the serving build. Also True
            for a build that is not serving, and for an index that was lost together with its
            alias.
    """

    generation: Generation
    index: Presence
    alias_correct: bool
    drift: Drift
    fits: bool = True

    @property
    def index_lost(self) -> bool:
        """Return whether the index is missing or was replaced by a different index."""
        return self.index != "present"

    @property
    def is_healthy(self) -> bool:
        """Return whether the index needs no repair."""
        return not self.index_lost and self.fits and self.alias_correct and self.drift.is_empty

    @property
    def must_be_replaced(self) -> bool:
        """Return whether the index must be created again, in place of the present one."""
        return self.index_lost or not self.fits


class IndexDifference(NamedTuple):
    """A difference between an index and the catalog, found by counting.

    Another index may have replaced the build's index on purpose.
    """

    text: str
    is_replaced: bool = False
    is_lost: bool = False


def inspect_index(
    ctx: TenantContext,
    build: Generation | None = None,
    *,
    share: DailyShare | None = None,
    by_counts: bool = False,
) -> list[IndexState]:
    """Compare the builds of a tenant with their indexes; read-only.

    Args:
        build: the only build to compare; None: all live builds.
        share: the texts whose vectors are compared with the lake; None: compare no vectors.
        by_counts: count entries first, then read only the entries of documents with an unexpected
            count and of documents in the share.
    """
    generations = ctx.catalog.generations.live(ctx.ref.id)
    serving = ctx.catalog.generations.serving(ctx.ref.id)
    return [
        _inspect_build(ctx, generation, generations, serving, share, by_counts=by_counts)
        for generation in generations
        if build is None or generation.number == build.number
    ]


def _inspect_build(
    ctx: TenantContext,
    generation: Generation,
    generations: list[Generation],
    serving: Generation | None,
    share: DailyShare | None,
    *,
    by_counts: bool,
) -> IndexState:
    index = ctx.store.indexes.presence(build_index_ref(generation))
    if index != "present":
        # Everything in the index is lost: listing each document as well would hide the reason.
        expected = ctx.catalog.index.entry_count(ctx.ref.id, generation.number)
        return IndexState(generation, index, alias_correct=True, drift=Drift(expected, 0))
    vector_drift = VectorDrift()
    if share is not None:
        expected = ctx.catalog.index.entry_count(ctx.ref.id, generation.number)
        vector_drift = compare_entries(ctx, generation, share, expected)
    if by_counts:
        drift = _compare_build_by_counts(ctx, generation, generations, vector_drift.doubtful)
    else:
        drift = _compare_build(ctx, generation, generations)
    drift = replace(drift, vectors=tuple(sorted(vector_drift.altered)))
    return IndexState(
        generation=generation,
        index=index,
        alias_correct=serving is None
        or serving.number != generation.number
        or is_alias_right(ctx, generation),
        drift=drift,
        fits=_has_fitting_mapping(ctx, generation),
    )


def _compare_build(
    ctx: TenantContext,
    generation: Generation,
    generations: Collection[Generation],
    document_ids: Collection[str] | None = None,
    strangers: Collection[ScannedEntry] = (),
) -> Drift:
    """Compare the entries of a build, or of some of its documents, with the catalog."""
    others = [g.number for g in generations if g.number != generation.number]
    leaving = ctx.catalog.index.removals(ctx.ref.id).get(generation.number, [])
    owner = ctx.owner(generation)
    live = ctx.store.entries.scan(generation.index_name, ctx.ref.id, owner.digest_key, document_ids)
    versions: Iterable[HeldVersion] = ctx.catalog.index.stream_versions(
        ctx.ref.id, generation.number
    )
    if document_ids is not None:
        versions = [version for version in versions if version.document_id in document_ids]
    return compare_index(versions, chain(live, strangers), owner, others, set(leaving))


def _compare_build_by_counts(
    ctx: TenantContext,
    generation: Generation,
    generations: Collection[Generation],
    doubtful: Collection[str],
) -> Drift:
    """Compare most documents with the catalog only by their number of entries.

    Documents with a different number, and doubtful ones, are compared entry by entry.
    """
    entries, name, index = ctx.store.entries, generation.index_name, ctx.catalog.index
    leaving = set(index.removals(ctx.ref.id).get(generation.number, []))
    versions = index.stream_versions(ctx.ref.id, generation.number)
    counts = entries.iter_version_counts(name, ctx.owner(generation))
    suspects = find_suspects(versions, counts, leaving) | set(doubtful)
    owners = [ctx.owner(other) for other in generations if other.index_name == name]
    strangers = list(entries.iter_unowned_entries(name, ctx.ref.id, owners))
    suspects |= {entry.document_id for entry in strangers}
    expected = index.entry_count(ctx.ref.id, generation.number)
    if not suspects:
        return Drift(expected, expected)
    if not all(suspects):
        return _compare_build(ctx, generation, generations)  # Some entries have no document id.
    drift = _compare_build(
        ctx, generation, generations, {id_ for id_ in suspects if id_}, strangers
    )
    return replace(drift, expected=expected, live=expected - drift.expected + drift.live)


def _has_fitting_mapping(ctx: TenantContext, generation: Generation) -> bool:
    """Return whether an index has the mapping of its build; True if no run can write the build."""
    try:
        spec = ctx.for_build(generation).index_spec(generation)
    except BuildNotWritable:
        return True
    return ctx.store.indexes.fits(generation.index_name, spec)


def find_index_differences(
    catalog: Catalog, store: VectorStore, keeper: CatalogMarkKeeper, tenants: Sequence[TenantRef]
) -> dict[str, list[IndexDifference]]:
    """Return the differences between the indexes of tenants and the catalog, by tenant.

    Entries are counted in two requests for all tenants. Tenants with differences are counted a
    second time. Tenants that are being written to are skipped, because they may be between two
    steps of a write.

    Raises:
        IndexUnavailable: an index is closed, blocked or red.
    """
    differences = _find_differences(catalog, store, keeper, tenants)
    suspects = [
        ref for ref in tenants if ref.id in differences and not catalog.lock.is_held(ref.id)
    ]
    if not suspects:
        return {}
    differences = _find_differences(catalog, store, keeper, suspects)
    return {id_: all_ for id_, all_ in differences.items() if not catalog.lock.is_held(id_)}


def _find_differences(
    catalog: Catalog, store: VectorStore, keeper: CatalogMarkKeeper, tenants: Sequence[TenantRef]
) -> dict[str, list[IndexDifference]]:
    expected = catalog.index.expected_entries([ref.id for ref in tenants])
    live = catalog.generations.list_live_by_tenant([ref.id for ref in tenants])
    compared = [
        (ref, generation, expected[ref.id, generation.number])
        for ref in tenants
        for generation in live.get(ref.id, ())
        if (ref.id, generation.number) in expected
    ]
    counts = store.indexes.count(
        [
            CountedBuild(
                build_index_ref(generation),
                build_owner(ref, generation),
                wanted.recent_keys,
                is_serving=generation.state == "SERVING",
            )
            for ref, generation, wanted in compared
        ]
    )
    differences: dict[str, list[IndexDifference]] = {}
    for (ref, generation, wanted), count in zip(compared, counts, strict=True):
        difference = _find_difference(ref, generation, wanted, count)
        # A catalog restored from an older dump lacks versions that the index rightly holds.
        is_surplus = count.presence == "present" and count.entries > wanted.entries
        if difference is not None and not (is_surplus and keeper.compare_marks(ref) != "current"):
            differences.setdefault(ref.id, []).append(difference)
    return differences


def _find_difference(
    ref: TenantRef, generation: Generation, wanted: ExpectedEntries, count: BuildCount
) -> IndexDifference | None:
    """Return how a build differs from the catalog; None if it does not."""
    build = f"build {generation.number} of tenant {ref.id!r}"
    if count.presence != "present":
        is_replaced = count.presence == "replaced"
        problem = "was replaced by a different index" if is_replaced else "is gone"
        text = f"index {generation.index_name!r} of tenant {ref.id!r} {problem}"
        return IndexDifference(text, is_replaced, is_lost=not is_replaced)
    if wanted.is_settled and count.entries != wanted.entries:
        counts_text = f"{count.entries:,} entries, but the catalog records {wanted.entries:,}"
        return IndexDifference(f"{build} holds {counts_text}")
    if wanted.is_settled and count.recent < wanted.recent:
        lacking = f"{wanted.recent - count.recent:,} of the {wanted.recent:,} entries"
        return IndexDifference(f"{build} lacks {lacking} that were written last")
    if not count.is_shown:
        return IndexDifference(f"the alias of tenant {ref.id!r} does not show {build}")
    return None
