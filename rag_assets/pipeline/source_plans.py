"""Plans of the changes by a tenant's next listing, source by source; nothing is written.

A sync acts on these plans and `plan` shows them, so that both follow the same rules: which
documents are deleted, which are kept because too many vanished at once, and the handling of a
source that cannot be listed or is no longer configured.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from rag_assets.common.errors import ListingFailed
from rag_assets.ingest.sources.diff import deletions_suspicious
from rag_assets.ingest.sources.kinds import SourceConfig
from rag_assets.ingest.sources.model import DocumentSource
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.source_listing import (
    SourceListing,
    compare_source,
    digest_without_listing,
    open_sources,
    settings_key,
    without_pruned,
)
from rag_assets.privacy.masker import Masker
from rag_assets.storage.catalog.document_rows import CatalogDocument
from rag_assets.storage.catalog.syncs import Sync


@dataclass(frozen=True, slots=True)
class Deletions:
    """Decision about the documents that a source no longer holds.

    Attributes:
        removed: ids of those that are deleted, in order.
        held: ids of those that are kept until a person allows so many deletions, or accepts a
            catalog that was set back; in order.
    """

    removed: tuple[str, ...] = ()
    held: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SourcePlan:
    """The changes by a listing of one source.

    Attributes:
        known: the catalog's documents of the source, deleted ones too.
        settings: see settings_key.
        listing: None where the source could not be listed; its documents stay as they are.
        error: why it could not be listed.
    """

    config: SourceConfig
    source: DocumentSource
    known: list[CatalogDocument]
    settings: str
    listing: SourceListing | None
    deletions: Deletions = field(default_factory=Deletions)
    error: ListingFailed | None = None


@dataclass(frozen=True, slots=True)
class RemovedSourcePlan:
    """The changes by the removal of a source from the tenant's configuration.

    Attributes:
        uris: of its documents, by id.
    """

    name: str
    uris: dict[str, str]
    deletions: Deletions


def decide_deletions(
    vanished: Collection[str], *, lost: int, known: int, allow_deletes: bool = False
) -> Deletions:
    """Delete vanished documents, or hold all of a source's if they are suspiciously many.

    Args:
        vanished: ids of documents that the source no longer holds.
        lost: how many of them do not appear under another name in the same listing.
        known: documents that the source held before.
        allow_deletes: whether a person has allowed any number.
    """
    ids = tuple(sorted(vanished))
    if not allow_deletes and deletions_suspicious(lost, known):
        return Deletions(held=ids)
    return Deletions(removed=ids)


def plan_sources(
    ctx: TenantContext, *, allow_deletes: bool = False, anew: bool = True
) -> Iterator[SourcePlan]:
    """List every configured source completely, one after the other, and compare each.

    Args:
        ctx: of the tenant.
        allow_deletes: whether a person has allowed any number of deletions.
        anew: list a source also if it knows that nothing has changed since its last listing.
    """
    opened = open_sources(ctx.tenant, ctx.settings, ctx.catalog)
    syncs = {} if anew else ctx.catalog.syncs.all(ctx.ref.id)
    for config, source in zip(ctx.tenant.sources, opened, strict=True):
        settings = settings_key(ctx.tenant, config)
        last = syncs.get(source.name)
        if last is not None and (listing := _as_before(ctx, source, settings, last)):
            yield SourcePlan(config, source, [], settings, listing)
            continue
        known = list(ctx.catalog.documents.known(ctx.ref.id, source.name))
        try:
            compared = compare_source(source, known, settings)
        except ListingFailed as error:
            yield SourcePlan(config, source, known, settings, None, error=error)
            continue
        listing = without_pruned(ctx, compared)
        deletions = decide_deletions(
            listing.removed - listing.withheld,
            lost=listing.lost,
            known=listing.known,
            allow_deletes=allow_deletes,
        )
        # What a source leaves out by its rules goes on the day, however much it is.
        removed = tuple(sorted({*deletions.removed, *listing.withheld}))
        deletions = replace(deletions, removed=removed)
        yield SourcePlan(config, source, known, settings, listing, deletions)


def _as_before(
    ctx: TenantContext, source: DocumentSource, settings: str, last: Sync
) -> SourceListing | None:
    """The listing of a source that knows that nothing has changed; None: it has to be listed.

    A run over many slices would list all of its documents for each of them.
    """
    listed_at_ns = time.time_ns()
    digest = digest_without_listing(source, settings)
    if digest is None or digest != last.listing_digest or last.held_deletions:
        return None
    if ctx.catalog.documents.reread_count(ctx.ref.id, [source.name]):
        return None
    count = ctx.catalog.documents.count(ctx.ref.id, source.name)
    return SourceListing(
        changes=(),
        removed=frozenset(),
        lost=0,
        known=count,
        unchanged=count,
        digest=digest,
        listed_at_ns=listed_at_ns,
    )


def plan_removed_sources(
    ctx: TenantContext, *, allow_deletes: bool = False
) -> Iterator[RemovedSourcePlan]:
    """Plan the deletion of sources that are recorded and no longer configured."""
    recorded = {*ctx.catalog.syncs.all(ctx.ref.id), *ctx.catalog.documents.sources(ctx.ref.id)}
    for name in sorted(recorded - {config.name for config in ctx.tenant.sources}):
        rows = ctx.catalog.documents.known(ctx.ref.id, name)
        uris = {row.document_id: row.uri for row in rows if row.status != "DELETED"}
        deletions = decide_deletions(
            uris, lost=len(uris), known=len(uris), allow_deletes=allow_deletes
        )
        yield RemovedSourcePlan(name, uris, deletions)


def masked_failure(plan: SourcePlan, masker: Masker) -> ListingFailed:
    """The failure of a listing, credentials in its path masked."""
    error = plan.error or ListingFailed(f"source {plan.config.name!r} was not listed")
    return ListingFailed(masker.text(error.message), hint=error.hint)


def require_any_listed(failures: Sequence[ListingFailed], sources: int) -> None:
    """Raise an error if every source of a tenant failed.

    Args:
        failures: one of each source that could not be listed, its message fit to be shown.
        sources: how many sources the tenant has.

    Raises:
        ListingFailed: no source could be listed.
    """
    if not failures or len(failures) < sources:
        return
    if len(failures) == 1:
        raise failures[0]
    raise ListingFailed(
        "; ".join(failure.message for failure in failures),
        hint="check that the folders are mounted",
    )
