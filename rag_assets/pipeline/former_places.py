"""Former locations of lake and blobs, from which erasures delete and which receipts name.

An installation that moved may have left data behind. Data in locations that can be opened is erased
with the rest. The receipt lists every other recorded location as not seen.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rag_assets.common.settings import Settings
from rag_assets.pipeline.context import TenantContext
from rag_assets.storage.blobs.store import BlobStore, open_blobs_at
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.installation.markers import Root
from rag_assets.storage.lake.model import DeadKeys, LiveKeys
from rag_assets.storage.lake.store import Lake, TenantLake


@dataclass(frozen=True, slots=True)
class FormerPlaces:
    """Former locations of an installation's data.

    Attributes:
        lakes, blobs: locations that can be opened, and still belong to the installation.
        unseen: the other locations, as listed in receipts.
    """

    lakes: tuple[Lake, ...]
    blobs: tuple[BlobStore, ...]
    unseen: tuple[str, ...]


def open_former_places(catalog: Catalog, settings: Settings) -> FormerPlaces:
    """Open the former locations of lake and blobs.

    Indexes under former prefixes are covered together with the present indexes. A former cluster or
    vector server is not reached, because its credentials are not kept.
    """
    row = catalog.installation.read()
    if row is None:
        return FormerPlaces((), (), ())
    former = [place for place in catalog.installation.places() if place.left_at is not None]
    lakes, blobs, unseen = list[Lake](), list[BlobStore](), list[str]()
    for place in former:
        if place.kind == "index":
            continue
        is_root = place.kind in {"lake", "blobs"}
        if not is_root or Root(place.kind, place.address, settings).owner() != row.id:
            unseen.append(f"the {place.kind} at {place.address}, left on {place.left_at:%Y-%m-%d}")
        elif place.kind == "lake":
            lakes.append(Lake(place.address))
        else:
            blobs.append(open_blobs_at(place.address, settings))
    return FormerPlaces(tuple(lakes), tuple(blobs), tuple(unseen))


def erase_tenant(places: FormerPlaces, ref: TenantRef) -> int:
    """Delete a tenant's data in former locations; return the number of locations with data left."""
    left = 0
    stores: list[Lake | BlobStore] = [*places.lakes, *places.blobs]
    for store in stores:
        for incarnation in incarnations_of(store, ref):
            store.tenant(ref.id, incarnation).purge()
        left += bool(incarnations_of(store, ref))
    return left


def erase_rows(ctx: TenantContext, dead: DeadKeys) -> None:
    """Delete the rows of documents from former lakes."""
    for lake in _former_lakes(ctx):
        lake.compact(LiveKeys(), dead)


def count_files_left(ctx: TenantContext, dead: DeadKeys) -> int:
    """Return how many files of former lakes contain rows of erased documents."""
    lakes = _former_lakes(ctx)
    return sum(len(lake.files_holding(dead, (), LiveKeys())) for lake in lakes)


def _former_lakes(ctx: TenantContext) -> Iterator[TenantLake]:
    for lake in open_former_places(ctx.catalog, ctx.settings).lakes:
        if ctx.ref.incarnation in incarnations_of(lake, ctx.ref):
            yield lake.tenant(ctx.ref.id, ctx.ref.incarnation, guard=ctx.guard)


def incarnations_of(store: Lake | BlobStore, ref: TenantRef) -> list[int]:
    """Return the incarnations of a tenant id, up to the present one, that have data in a store."""
    return [
        number
        for id_, number in store.incarnations()
        if id_ == ref.id and number <= ref.incarnation
    ]
