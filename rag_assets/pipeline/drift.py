"""Drift: compare the live index with the catalog, and repair the difference."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from rag_assets.pipeline.context import TenantContext, index_of
from rag_assets.pipeline.generations import (
    ActiveBuild,
    active_builds,
    alias_is_right,
    drop_generation,
    found_builds,
    publish,
)
from rag_assets.pipeline.publishing import clean_up, remove_deleted
from rag_assets.pipeline.source_contents import read_again
from rag_assets.storage.catalog.generations import Generation
from rag_assets.storage.catalog.index_rows import HeldVersion
from rag_assets.storage.index.model import Owner, Presence, ScannedEntry, entry_id


@dataclass(frozen=True, slots=True)
class Drift:
    """The difference between a live index and the catalog.

    Attributes:
        expected, live: counts of the generation's entries.
        missing: documents of which entries are lacking.
        altered: documents with an entry that another writer changed, or that has
            another access scope than the catalog's.
        orphans: ids of entries of this tenant that belong to no recorded version.
        foreign: ids of entries routed to this tenant that carry another tenant's id, or the
            other way round.
    """

    expected: int
    live: int
    missing: tuple[str, ...] = ()
    altered: tuple[str, ...] = ()
    orphans: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Counts only: a log line cannot hold thousands of ids."""
        return (
            f"{self.live:,} of {self.expected:,} entries; documents with entries missing:"
            f" {len(self.missing):,}, altered: {len(self.altered):,}; orphaned entries:"
            f" {len(self.orphans):,}, foreign: {len(self.foreign):,}"
        )

    @property
    def none(self) -> bool:
        """Whether the index equals the catalog."""
        return not (self.missing or self.altered or self.orphans or self.foreign)


@dataclass(frozen=True, slots=True)
class IndexState:
    """The state of one generation's index, as the drift check compares it.

    Attributes:
        index: whether the index that was written to exists.
        alias_correct: whether the tenant's alias shows exactly the serving generation; True for
            a generation that is not serving.
    """

    generation: Generation
    index: Presence
    alias_correct: bool
    drift: Drift

    @property
    def index_lost(self) -> bool:
        """Whether the index is missing, or is not the one that was written to."""
        return self.index != "present"

    @property
    def healthy(self) -> bool:
        """Whether nothing needs repair."""
        return not self.index_lost and self.alias_correct and self.drift.none


@dataclass(slots=True)
class _Tally:
    key: str
    count: int
    scope: str | None
    seen: int = 0


def compare_index(
    held: Iterable[HeldVersion],
    live: Iterable[ScannedEntry],
    owner: Owner,
    others: Iterable[int] = (),
    leaving: Collection[str] = (),
) -> Drift:
    """Compare the catalog's versions of a generation with the entries of a scan.

    Memory grows with the documents, not with the entries.

    Args:
        held: the catalog's versions of the generation.
        live: every entry that a scan found for the tenant.
        owner: the owner of the generation's entries.
        others: the tenant's other live generations, whose entries are ignored.
        leaving: ids of deleted documents, whose entries the next sync deletes.
    """
    tallies = {v.document_id: _Tally(v.indexed_key, v.chunk_count, v.access_scope) for v in held}
    elsewhere = set(others)
    altered: set[str] = set()
    orphans: list[str] = []
    foreign: list[str] = []
    count = 0
    for entry in live:
        if entry.tenant != owner.tenant or not entry.correctly_routed:
            foreign.append(entry.id)
        elif entry.incarnation == owner.incarnation and (
            entry.generation in elsewhere or entry.document_id in leaving
        ):
            continue
        elif not _belongs(entry, owner, tallies):
            orphans.append(entry.id)
        else:
            count += 1
            tally = tallies[entry.document_id]
            tally.seen += 1
            if not entry.intact or tally.scope not in {None, entry.access_scope}:
                altered.add(entry.document_id)
    missing = [id_ for id_, tally in tallies.items() if tally.seen < tally.count]
    return Drift(
        expected=sum(tally.count for tally in tallies.values()),
        live=count,
        missing=tuple(sorted(missing)),
        altered=tuple(sorted(altered)),
        orphans=tuple(sorted(orphans)),
        foreign=tuple(sorted(foreign)),
    )


def inspect_index(ctx: TenantContext, build: Generation | None = None) -> list[IndexState]:
    """Compare generations of a tenant with their indexes; changes nothing.

    Args:
        ctx: the tenant's context.
        build: the only one to compare; None: every live one.
    """
    generations = ctx.catalog.generations.live(ctx.ref.id)
    serving = ctx.catalog.generations.serving(ctx.ref.id)
    return [
        _inspect(ctx, generation, generations, serving)
        for generation in generations
        if build is None or generation.number == build.number
    ]


def repair_index(ctx: TenantContext) -> list[IndexState]:
    """Repair the drift that inspect_index finds; the next sync writes missing entries again.

    The next sync also reads all documents again, whatever their facts are.

    Returns:
        the state before the repair.
    """
    read_again(ctx)
    remove_deleted(ctx)
    clean_up(ctx)
    states = inspect_index(ctx)
    builds = found_builds(ctx, [state.generation for state in states])
    for state in states:
        build = builds.get(state.generation.number)
        if build is not None and state.index_lost:
            _replace_index(build)
        elif build is not None and not state.drift.none:
            _repair(ctx, state)
    for state in states:
        if state.generation.number not in builds:
            _repair_other(ctx, state)
    serving = ctx.catalog.generations.serving(ctx.ref.id)
    if serving is not None:
        ctx.guard()
        owner = ctx.owner(serving)
        ctx.store.indexes.publish(serving.index_name, owner)
    for state in states:
        if not state.healthy:
            ctx.catalog.events.write(ctx.ref, "index_repaired", [_summary(state)])
    return states


def _inspect(
    ctx: TenantContext,
    generation: Generation,
    generations: list[Generation],
    serving: Generation | None,
) -> IndexState:
    owner = ctx.owner(generation)
    index = ctx.store.indexes.presence(index_of(generation))
    live = ctx.store.entries.scan(generation.index_name, ctx.ref.id, owner.digest_key)
    others = [g.number for g in generations if g.number != generation.number]
    held = ctx.catalog.index.held_versions(ctx.ref.id, generation.number)
    leaving = ctx.catalog.index.removals(ctx.ref.id).get(generation.number, [])
    return IndexState(
        generation=generation,
        index=index,
        alias_correct=serving is None
        or serving.number != generation.number
        or alias_is_right(ctx, generation),
        drift=compare_index(held, live, owner, others, set(leaving)),
    )


def _belongs(entry: ScannedEntry, owner: Owner, tallies: dict[str, _Tally]) -> bool:
    tally = tallies.get(entry.document_id)
    return (
        tally is not None
        and (entry.incarnation, entry.generation) == (owner.incarnation, owner.generation)
        and entry.index_key == tally.key
        and 0 <= entry.ordinal < tally.count
        and entry.id == entry_id(owner, entry.document_id, entry.index_key, entry.ordinal)
    )


def _repair(ctx: TenantContext, state: IndexState) -> None:
    generation, drift = state.generation, state.drift
    ctx.guard()
    if generation.state in {"COMPLETE", "HELD"}:
        ctx.catalog.generations.reopen(ctx.ref, generation)
    wrong = [*drift.orphans, *drift.foreign]
    ctx.store.entries.delete(generation.index_name, ctx.ref.id, wrong)
    damaged = sorted({*drift.missing, *drift.altered})
    ctx.catalog.index.invalidate(ctx.ref, generation.number, damaged)


def _repair_other(ctx: TenantContext, state: IndexState) -> None:
    """Repair a build that no run brings up to date, whose entries are not written again."""
    generation, drift = state.generation, state.drift
    damaged = state.index_lost or bool(drift.missing or drift.altered)
    if not damaged:
        if not drift.none:
            _repair(ctx, state)
        return
    if generation.state == "SERVING":
        if not state.index_lost:
            return  # Its remaining entries are served until its successor is complete.
        publish(ctx, active_builds(ctx).wanted.generation)
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


def _summary(state: IndexState) -> dict[str, object]:
    drift = state.drift
    return {
        "generation": state.generation.number,
        "index_lost": state.index_lost,
        "alias_correct": state.alias_correct,
        "missing_documents": len(drift.missing),
        "altered_documents": len(drift.altered),
        "orphans": len(drift.orphans),
        "foreign": len(drift.foreign),
    }
