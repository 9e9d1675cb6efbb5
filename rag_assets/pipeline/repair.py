"""Repair: brings lake and index in line with the catalog.

Only vectors that no store has are embedded again.
"""

from __future__ import annotations

from dataclasses import dataclass

from rag_assets.common.formatting import counted
from rag_assets.pipeline.catalog_mark import may_delete
from rag_assets.pipeline.context import TenantContext, index_of
from rag_assets.pipeline.drift import IndexState, inspect_index
from rag_assets.pipeline.fact_stores import StoreRepair, all_stores
from rag_assets.pipeline.generations import ActiveBuild, active_builds, found_builds
from rag_assets.pipeline.lake_drift import LakeDrift
from rag_assets.pipeline.lake_repair import repair_lake
from rag_assets.pipeline.publication import drop_generation, publish
from rag_assets.pipeline.publishing import clean_up, remove_deleted
from rag_assets.pipeline.shares import Share
from rag_assets.pipeline.source_contents import ContentsReport, compare_contents, read_again
from rag_assets.pipeline.vectors_beside import repair_vectors


@dataclass(frozen=True, slots=True)
class Repair:
    """The findings of a repair, as they were before the repair.

    Attributes:
        contents: documents whose content differs from the recorded content; the next sync reads
            them again.
        stores: repairs of fact stores.
        vectors_beside: builds whose separate vector store was copied again.
    """

    states: tuple[IndexState, ...]
    lake: LakeDrift
    contents: ContentsReport
    stores: tuple[StoreRepair, ...] = ()
    vectors_beside: int = 0

    @property
    def healthy(self) -> bool:
        """Return whether no repair was needed."""
        altered = self.contents.altered or self.contents.gone
        sound = self.lake.none and not altered and not self.vectors_beside
        sound = sound and not any(store.description for store in self.stores)
        return sound and all(state.healthy for state in self.states)

    def lines(self) -> list[str]:
        """Return the repairs in words."""
        found = [
            f"generation {state.generation.number}: {state.drift}"
            for state in self.states
            if not state.healthy
        ]
        if not self.lake.none:
            found.append(str(self.lake))
        found += [store.description for store in self.stores if store.description]
        if self.vectors_beside:
            builds = counted(self.vectors_beside, "build")
            found.append(f"the separate vector stores of {builds} differed")
        if self.lake.to_embed:
            texts = counted(self.lake.to_embed, "text")
            found.append(f"{texts} will be embedded again, because no store has their vectors")
        if again := len(self.contents.altered) + len(self.contents.gone):
            found.append(f"{counted(again, 'document')} will be read again")
        return found


def repair(ctx: TenantContext, share: Share | None = None) -> Repair:
    """Repair what differs; the next sync writes missing entries and reads altered documents again.

    Args:
        ctx: the tenant's context; the caller holds the tenant's lock.
        share: the part of contents, vectors and files that is compared; None: all.
    """
    share = share or Share(1, ctx.clock.now().date())
    contents = compare_contents(ctx, share)
    if contents.altered or contents.gone:
        read_again(ctx, [*contents.altered, *contents.gone])
    lake = repair_lake(ctx, share)
    states = repair_index(ctx, share)
    stores = tuple(store.repair(ctx, share) for store in all_stores())
    done = Repair(tuple(states), lake, contents, stores, repair_vectors(ctx))
    ctx.catalog.events.write(ctx.ref, "index_repaired", [_summary(done)])
    return done


def repair_index(ctx: TenantContext, share: Share | None = None) -> list[IndexState]:
    """Repair the drift that inspect_index finds; the next sync writes missing entries again.

    Nothing is deleted while the catalog may have been restored from an older dump.

    Returns:
        The state before the repair.
    """
    remove_deleted(ctx)
    clean_up(ctx)
    states = inspect_index(ctx, share=share)
    builds = found_builds(ctx, [state.generation for state in states])
    for state in states:
        build = builds.get(state.generation.number)
        if build is not None and state.replaceable:
            if may_delete(ctx):
                _replace_index(build)
        elif build is not None and not state.drift.none:
            _repair(ctx, state)
    for state in states:
        if state.generation.number not in builds:
            _repair_other(ctx, state)
    serving = ctx.catalog.generations.serving(ctx.ref.id)
    # While the catalog may have been restored from an older dump, a lost index is not replaced.
    if serving is not None and ctx.store.indexes.presence(index_of(serving)) == "present":
        ctx.guard()
        owner = ctx.owner(serving)
        ctx.store.indexes.publish(serving.index_name, owner)
    return states


def _repair(ctx: TenantContext, state: IndexState) -> None:
    generation, drift = state.generation, state.drift
    ctx.guard()
    if generation.state in {"COMPLETE", "HELD"}:
        ctx.catalog.generations.reopen(ctx.ref, generation)
    wrong = [*drift.orphans, *drift.foreign]
    if wrong and may_delete(ctx):
        ctx.writer(generation).delete(generation.index_name, ctx.ref.id, wrong)
    ctx.catalog.index.invalidate(ctx.ref, generation.number, drift.damaged)


def _repair_other(ctx: TenantContext, state: IndexState) -> None:
    """Repair a build that no run brings up to date; its entries are not written again."""
    generation, drift = state.generation, state.drift
    damaged = state.replaceable or bool(drift.damaged)
    if not damaged:
        if not drift.none:
            _repair(ctx, state)
        return
    if generation.state == "SERVING":
        if not state.replaceable:
            return  # The build's remaining entries are served until its successor is complete.
        publish(ctx, active_builds(ctx).wanted.generation)
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


def _summary(done: Repair) -> dict[str, object]:
    return {
        "builds": [_summary_of(state) for state in done.states if not state.healthy],
        "files_of_the_lake": len(done.lake.files),
        "documents_lost_by_the_lake": len(
            {id_ for lost in done.lake.losses for id_ in lost.documents}
        ),
        "texts_to_embed": done.lake.to_embed,
        **{name: figure for store in done.stores for name, figure in store.figures.items()},
        "documents_to_read_again": len(done.contents.altered) + len(done.contents.gone),
    }


def _summary_of(state: IndexState) -> dict[str, object]:
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
