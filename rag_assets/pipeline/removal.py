"""Remove a tenant from every store and prove it; then its id can be used again."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from typing import Any

from rag_assets.common.clock import Clock
from rag_assets.common.errors import IndexInconsistent, ServiceUnavailable
from rag_assets.common.settings import Settings
from rag_assets.pipeline.mark_keeper import CatalogMarkKeeper
from rag_assets.pipeline.proof import (
    FormerPlaces,
    Traces,
    add_counts_left,
    add_dagster_instances,
    build_proof,
    collect_traces_of_tenant,
    has_traces,
    keep_traces,
    list_incarnations,
    open_former_places,
    purge_tenant_files,
    read_proof,
    read_traces,
    replace_traces,
    require_nothing_left,
)
from rag_assets.storage.blobs.store import BlobStore, open_blobs
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.erasure.erasures import Erasure
from rag_assets.storage.catalog.erasure.holds import require_no_hold
from rag_assets.storage.catalog.erasure.receipts import Receipt
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.storage.index.model import Owner
from rag_assets.storage.index.store import VectorStore
from rag_assets.storage.lake.store import Lake

_MAX_SWEEPS = 5


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
    """Clean the files shared with other tenants, and prove that no data remains."""
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
    remaining_files = sum(
        entry.incarnation <= record.incarnation
        for name in store.indexes.names()
        for entry in store.entries.scan(name, record.id)
    )
    if store.vectors is not None:
        remaining_files += len(store.vectors.schemas(record.id))
    remaining = {
        "index": remaining_files,
        "lake": len(list_incarnations(stores.lake, record.ref)),
        "blobs": len(list_incarnations(stores.blobs, record.ref)),
        "postgres": catalog.traces.find_columns(
            record.id, [*traces.document_ids, *traces.phrases], traces.names
        ),
    }
    if former.lakes or former.blobs:
        remaining["former places"] = purge_tenant_files((*former.lakes, *former.blobs), record.ref)
    embedder = record.config.get("embedder", {})
    remote = embedder.get("provider", "local") not in {"local", "deterministic"}
    searched_for = ["the tenant", *traces.kinds]
    return build_proof(
        searched_for,
        remaining,
        add_counts_left(deleted_entries),
        dead_rows,
        unseen=former.unseen,
        remote=remote,
    )


def purge_tenant(
    catalog: Catalog,
    lake: Lake,
    store: VectorStore,
    record: TenantRecord,
    settings: Settings,
    *,
    by: str,
    delete_history: Callable[[], None] | None = None,
) -> Receipt:
    """Delete every entry, file and row of a tenant, and prove it.

    The caller holds the tenant's lock.

    The state REMOVING is written first. It stops every writer that still has the tenant's context.
    Interrupting the removal is safe: the next call continues. Data of a later tenant with the same
    id is kept until an operator releases it, because a restored catalog may lack that tenant.

    Raises:
        OnHold: data of the tenant is held.
        RestorePending: the catalog lacks security changes, and so may lack holds.
        ErasureIncomplete: data of the tenant still exists; the next call continues.
    """
    blobs = open_blobs(settings)
    keeper = CatalogMarkKeeper(catalog, lake, blobs, lambda: store)
    if (pending := keeper.find_pending_restore()) is not None:
        raise pending
    require_no_hold(catalog.holds.all(record.id), record.id, "removing the tenant")
    catalog.tenants.set_state(record.id, "REMOVING")
    erasure = catalog.erasures.begin_removal(record.ref, by=by, at=Clock().now())
    if "lake" not in erasure.counts:
        erasure = catalog.erasures.record_counts(erasure, "lake", _count_lake_rows(lake, record))
    proof = read_proof(erasure)
    if proof is None and not has_traces(erasure):
        traces = collect_traces_of_tenant(catalog, lake, erasure)
        erasure = keep_traces(catalog, lake.notes, erasure, traces)
    store.indexes.withdraw(record.id)
    for index_name in store.indexes.names():
        _delete_remaining_entries(store, index_name, record.id, range(record.incarnation + 1))
    for index_name in store.indexes.dedicated(record.id):
        store.indexes.drop(index_name)
    if store.vectors is not None:
        store.vectors.drop_tenant(record.id)
    purge_tenant_files((lake, blobs), record.ref)
    keeper.forget(record.ref)
    shutil.rmtree(settings.data_docs / record.id, ignore_errors=True)
    if delete_history is not None:
        delete_history()
    catalog.erasures.forget_tenant(erasure)
    if proof is None:
        stores = Stores(catalog, lake, store, blobs)
        proof = _prove_removal(stores, record, erasure, settings, delete_history)
    replace_traces(catalog, lake.notes, erasure, proof)
    receipt = catalog.erasures.end_removal(erasure, proof)
    catalog.traces.vacuum(only=("tenants", "erasures"))
    return receipt


def _prove_removal(
    stores: Stores,
    record: TenantRecord,
    erasure: Erasure,
    settings: Settings,
    delete_history: Callable[[], None] | None,
) -> dict[str, Any]:
    """Return the proof of a removal.

    If Postgres still has data, Dagster's records are deleted once more, because a run may have
    started in the meantime.

    Raises:
        ErasureIncomplete: data of the tenant still exists.
    """
    catalog = stores.catalog
    former = open_former_places(catalog, settings)
    traces = read_traces(stores.lake.notes, erasure)
    proof = prove_removal(stores, record, erasure, traces, former)
    if delete_history is not None and proof["found"]["postgres"]:
        # A sensor that started before the state became REMOVING may have requested a run in the
        # meantime.
        delete_history()
        proof = prove_removal(stores, record, erasure, traces, former)
    others = catalog.dagster_histories.instances(record.id)
    if delete_history is not None:
        proof = add_dagster_instances(proof, settings, others)
    command = f"rag-assets tenants remove {record.id} --yes"
    require_nothing_left(proof["found"], f"tenant {record.id!r}", command, others)
    return proof


def find_interrupted_removals(catalog: Catalog) -> list[TenantRecord]:
    """Return the tenants with an interrupted removal that no process is continuing now."""
    return [
        record
        for record in catalog.tenants.all()
        if record.state == "REMOVING" and not catalog.lock.is_held(record.id)
    ]


def _count_lake_rows(lake: Lake, record: TenantRecord) -> Mapping[str, int]:
    rows: Counter[str] = Counter()
    try:
        tables = lake.tenant(record.id, record.incarnation).size()
    except ServiceUnavailable:
        return rows  # A table that cannot be read is deleted as well.
    for name, size in tables.items():
        rows[name.partition("/")[0]] += size.rows
    return rows


def delete_strays(catalog: Catalog, lake: Lake, store: VectorStore, blobs: BlobStore) -> int:
    """Delete entries and folders that late writers left for removed tenants; return how many.

    Nothing is deleted while the catalog lacks security changes, such as the removal of a tenant.
    """
    keeper = CatalogMarkKeeper(catalog, lake, blobs, lambda: store)
    if keeper.find_pending_restore() is not None:
        return 0
    swept = _delete_strays(keeper, lake, store, None)
    swept += _delete_stray_vectors(catalog, keeper, store)
    for tenant_id, incarnation in list(blobs.incarnations()):
        if keeper.is_stray(tenant_id, incarnation):
            blobs.tenant(tenant_id, incarnation).purge()
            swept += 1
    return swept


def delete_late_writes(
    catalog: Catalog, lake: Lake, store: VectorStore, blobs: BlobStore, tenant_id: str
) -> None:
    """Delete the entries that a late writer may have written after its tenant was removed.

    Called by a writer that has lost the tenant's lock. Entries of a present tenant with the same
    id, and entries of a tenant that a restored catalog lacks, stay.
    """
    keeper = CatalogMarkKeeper(catalog, lake, blobs, lambda: store)
    _delete_strays(keeper, lake, store, tenant_id)
    if catalog.tenants.find(tenant_id) is None:
        if not keeper.was_removed(tenant_id):
            return
        store.indexes.withdraw(tenant_id)
        for index_name in store.indexes.dedicated(tenant_id):
            store.indexes.drop(index_name)
        return
    serving = catalog.generations.serving(tenant_id)
    if serving is not None:
        ref = catalog.tenants.get(tenant_id).ref
        store.indexes.publish(serving.index_name, Owner(ref.id, ref.incarnation, serving.number))


def _delete_strays(
    keeper: CatalogMarkKeeper, lake: Lake, store: VectorStore, only: str | None
) -> int:
    swept = 0
    for index_name in store.indexes.names():
        for tenant_id, incarnation in store.indexes.owners(index_name):
            if only in {None, tenant_id} and keeper.is_stray(tenant_id, incarnation):
                swept += _delete_remaining_entries(store, index_name, tenant_id, (incarnation,))
    for tenant_id, incarnation in list(lake.incarnations()):
        if only in {None, tenant_id} and keeper.is_stray(tenant_id, incarnation):
            lake.tenant(tenant_id, incarnation).purge()
            swept += 1
    return swept


def _delete_stray_vectors(catalog: Catalog, keeper: CatalogMarkKeeper, store: VectorStore) -> int:
    """Delete vector tables that no build has any more; return how many builds they belonged to.

    The tables' names show neither tenant nor build. So no table is deleted while the catalog may
    lack a tenant or a build.
    """
    if store.vectors is None:
        return 0
    # A build's row names its tables before they are created, so none of the tables found is a new
    # one.
    schemas = store.vectors.schemas()
    if not schemas:
        return 0
    refs = [record.ref for record in catalog.tenants.all()]
    live = catalog.generations.list_live_by_tenant(ref.id for ref in refs)
    known = {
        store.vectors.schema(Owner(ref.id, ref.incarnation, generation.number))
        for ref in refs
        for generation in live.get(ref.id, ())
        if generation.vectors_beside is not None
    }
    strays = [schema for schema in schemas if schema not in known]
    if strays and (
        keeper.list_unknown_tenants() or any(keeper.compare_marks(ref) != "current" for ref in refs)
    ):
        return 0
    for schema in strays:
        store.vectors.drop_schema(schema)
    return len(strays)


def _delete_remaining_entries(
    store: VectorStore, index_name: str, tenant_id: str, incarnations: Container[int]
) -> int:
    """Delete a removed tenant's entries until a scan finds none; return how many were deleted."""
    deleted = 0
    for _ in range(_MAX_SWEEPS):
        scanned = store.entries.scan(index_name, tenant_id)
        ids = [entry.id for entry in scanned if entry.incarnation in incarnations]
        if not ids:
            return deleted
        deleted += store.entries.delete(index_name, tenant_id, ids)
    raise IndexInconsistent(
        f"new entries of the removed tenant {tenant_id!r} keep appearing in {index_name!r}",
        hint="stop the process that writes to the index, then remove the tenant again",
    )
