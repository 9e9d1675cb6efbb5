"""Proof of a tenant's removal: no trace of it is found in any store that can be reached."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rag_assets.pipeline.former_places import FormerPlaces, erase_tenant, incarnations_of
from rag_assets.pipeline.proof import proof_of, total_left
from rag_assets.pipeline.traces import Traces
from rag_assets.storage.blobs.store import BlobStore
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.erasure.erasures import Erasure
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.storage.index.store import VectorStore
from rag_assets.storage.lake.store import Lake


@dataclass(frozen=True, slots=True)
class Stores:
    """The stores of an installation."""

    catalog: Catalog
    lake: Lake
    store: VectorStore
    blobs: BlobStore


def prove_removal(
    stores: Stores,
    record: TenantRecord,
    erasure: Erasure,
    traces: Traces,
    former: FormerPlaces,
) -> dict[str, Any]:
    """Clean the files shared with other tenants, and search for remaining data of the tenant.

    Args:
        stores: the stores of the installation.
        record: the tenant; only its own row is left.
        erasure: the removal of the tenant.
        traces: the traces collected before the removal.
        former: former locations of lake and blobs, from which the tenant is erased as well.
    """
    catalog, store = stores.catalog, stores.store
    names = store.indexes.names()
    deleted_entries: list[int | None] = []
    for name in erasure.progress.get("indexes", ()):
        if name not in names:
            continue
        if catalog.generations.count_in_index(name):
            deleted_entries.append(store.indexes.expunge(name))
        else:
            store.indexes.drop(name)
    dead_rows = catalog.traces.vacuum()
    left = sum(
        entry.incarnation <= record.incarnation
        for name in store.indexes.names()
        for entry in store.entries.scan(name, record.id)
    )
    if store.vectors is not None:
        left += len(store.vectors.schemas(record.id))
    found = {
        "index": left,
        "lake": len(incarnations_of(stores.lake, record.ref)),
        "blobs": len(incarnations_of(stores.blobs, record.ref)),
        "postgres": catalog.traces.find_columns(
            record.id, [*traces.document_ids, *traces.phrases], traces.names
        ),
    }
    if former.lakes or former.blobs:
        found["former places"] = erase_tenant(former, record.ref)
    embedder = record.config.get("embedder", {})
    remote = embedder.get("provider", "local") not in {"local", "deterministic"}
    searched_for = ["the tenant", *traces.kinds]
    return proof_of(
        searched_for,
        found,
        total_left(deleted_entries),
        dead_rows,
        unseen=former.unseen,
        remote=remote,
    )
