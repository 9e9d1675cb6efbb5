"""Compare stored contents with the catalog, for documents that have no other source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeAlias

from rag_assets.pipeline.blobs import compare_blobs
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.shares import BYTES_A_SECOND, Share

_UNSWEPT = timedelta(days=8)
"""An unreferenced file of this age should have been deleted by the weekly compaction."""


@dataclass(frozen=True, slots=True)
class StoredDrift:
    """The difference between one store and the catalog.

    Attributes:
        store, one: name of the store, and the word for a single item in it.
        remedy: how to resolve a difference.
        compared: how many contents were compared.
        missing, altered: ids of documents with missing or altered stored content.
        nobodys: names of stored items that belong to no document and to no source.
    """

    store: str
    one: str
    remedy: str
    compared: int = 0
    missing: tuple[str, ...] = ()
    altered: tuple[str, ...] = ()
    nobodys: tuple[str, ...] = ()

    @property
    def none(self) -> bool:
        """Return whether the store equals the catalog."""
        return not (self.missing or self.altered or self.nobodys)


def compare_stored(ctx: TenantContext, share: Share) -> list[StoredDrift]:
    """Compare each store with the catalog; read-only.

    Args:
        share: the documents whose contents are compared; missing contents are always found.
    """
    return [compare(ctx, share) for compare in STORES]


def compare_records(ctx: TenantContext, share: Share) -> StoredDrift:
    """Compare the tenant's pushed records with its documents."""
    named = [
        config.name for config in ctx.tenant.sources if ctx.tenant.source_kind(config).of_records
    ]
    found = ctx.catalog.record_drift.find(ctx.ref.id, named, share.hashes)
    return StoredDrift(
        store="records",
        one="record",
        remedy="push missing and altered records again; to delete records that belong to no source,"
        " configure their source again and delete them there",
        compared=found.compared,
        missing=found.missing,
        altered=found.altered,
        nobodys=found.nobodys,
    )


def compare_uploads(ctx: TenantContext, share: Share) -> StoredDrift:
    """Compare the tenant's uploaded files with its uploads."""
    found: dict[str, set[str]] = {"missing": set(), "altered": set(), "nobody's": set()}
    differences = compare_blobs(
        ctx.catalog,
        ctx.blobs,
        ctx.ref,
        is_read=share.__contains__,
        older_than=ctx.clock.now() - _UNSWEPT,
        bytes_a_second=BYTES_A_SECOND,
    )
    for one in differences:
        found[one.fault].update(one.document_ids or (one.sha256,))
    return StoredDrift(
        store="files",
        one="uploaded file",
        remedy="upload missing and altered files again; `rag-assets uploads list TENANT` lists"
        " them",
        missing=tuple(sorted(found["missing"])),
        altered=tuple(sorted(found["altered"])),
        nobodys=tuple(sorted(found["nobody's"])),
    )


Comparison: TypeAlias = Callable[[TenantContext, Share], StoredDrift]

STORES: tuple[Comparison, ...] = (compare_records, compare_uploads)
"""One comparison for each store that holds the only copy of its contents."""
