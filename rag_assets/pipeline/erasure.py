"""Erasure: remove documents from every store, and write a receipt.

An erasure is decided in one transaction (see ErasureTable). The steps that follow may be
interrupted anywhere; the next run repeats them as a whole.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Set
from dataclasses import replace
from typing import Any

from rag_assets.common.errors import ErasureIncomplete
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.generations import drop_generation
from rag_assets.pipeline.mark_keeper import may_delete, require_current
from rag_assets.pipeline.proof import (
    Traces,
    add_counts_left,
    collect_traces,
    drop_living_traces,
    erase_rows,
    find_remaining_entries,
    has_traces,
    keep_traces,
    open_former_places,
    prove_credential_erasure,
    prove_erasure,
    read_proof,
    read_traces,
    replace_traces,
    require_nothing_left,
)
from rag_assets.pipeline.publishing import delete_leftover_entries, delete_removed_documents
from rag_assets.pipeline.rescan import begin_scan, scan
from rag_assets.pipeline.slices import find_parsed_documents
from rag_assets.pipeline.uploads import drop_blobs, list_unreferenced_blobs
from rag_assets.pipeline.versions import NeededKeys, find_needed_keys
from rag_assets.privacy.masker import get_scanner
from rag_assets.storage.catalog.erasure.erasures import Erasure
from rag_assets.storage.catalog.erasure.receipts import Receipt
from rag_assets.storage.catalog.erasure.rescans import read_hashes
from rag_assets.storage.lake.location import LakeNotes
from rag_assets.storage.lake.model import DeadKeys
from rag_assets.storage.lake.store import Lake


def settle_open_erasures(ctx: TenantContext, *, seconds: float | None = None) -> list[Receipt]:
    """Finish the tenant's open erasures, including those that a killed process started.

    While the catalog may have been restored from an older dump, no erasure is finished: the catalog
    may lack documents that need the same text.
    """
    erasures = ctx.catalog.erasures.list_open(ctx.ref.id)
    if erasures and not may_delete(ctx):
        return []
    receipts = []
    for erasure in erasures:
        if erasure.kind == "secrets":
            receipt = settle_scan(ctx, erasure, seconds=seconds)
        elif erasure.kind == "discard":
            receipt = settle_discard(ctx, erasure)
        else:
            receipt = _settle_if_possible(ctx, erasure)
        if receipt is not None:
            receipts.append(receipt)
    return receipts


def _settle_if_possible(ctx: TenantContext, erasure: Erasure) -> Receipt | None:
    """Settle an erasure; if it is incomplete, only log why, so that the tenant's run continues."""
    try:
        return settle_erasure(ctx, erasure)
    except ErasureIncomplete as error:
        ctx.log(f"{error.message}; {error.hint}")
        return None


def rescan_tenant(ctx: TenantContext, *, by: str, seconds: float | None = None) -> Receipt | None:
    """Scan stored data if the rules have changed; return a receipt if credentials were erased."""
    unfinished = begin_scan(ctx, by=by)
    return None if unfinished is None else settle_scan(ctx, unfinished, seconds=seconds)


def settle_scan(
    ctx: TenantContext, unfinished: Erasure, *, seconds: float | None = None
) -> Receipt | None:
    """Continue a scan, and erase the credentials it found from every store; see rescan_tenant."""
    erasure = scan(ctx, unfinished, get_scanner(ctx.settings.local), seconds=seconds)
    if erasure is None:
        return None
    if not erasure.counts:
        ctx.guard()
        return ctx.catalog.rescans.end(erasure, {})
    if not may_delete(ctx):
        return None
    erasure = _record_counts(ctx, erasure)
    _erase_entries(ctx)
    needed = find_needed_keys(ctx)
    dead = _list_credential_keys(erasure, needed)
    # Vectors stay: the other chunks need their vectors again when the masked texts are chunked.
    ctx.guard()
    ctx.lake.compact(replace(needed.keys_to_keep, texts=None), dead)
    erase_rows(ctx, dead)
    deleted_entries, dead_rows = _clean_files(ctx, ())
    proof = prove_credential_erasure(ctx, dead, deleted_entries, dead_rows)
    ctx.guard()
    return ctx.catalog.rescans.end(erasure, proof)


def settle_discard(ctx: TenantContext, erasure: Erasure) -> Receipt:
    """Delete the build that this erasure discards, then write its receipt."""
    build = erasure.progress["generation"], erasure.progress["made_at"]
    for generation in ctx.catalog.generations.live(ctx.ref.id):
        # The number of a deleted build may be reused.
        if (generation.number, generation.created_at.isoformat()) == build:
            drop_generation(ctx, generation)
    ctx.guard()
    return ctx.catalog.erasures.end(erasure)


def settle_erasure(ctx: TenantContext, erasure: Erasure) -> Receipt:
    """Erase the documents of an erasure from every store, then write its receipt."""
    erasure = _record_counts(ctx, erasure)
    if erasure.kind != "purge":
        _erase_everywhere(ctx, erasure)
        ctx.guard()
        return ctx.catalog.erasures.end(erasure)
    notes = Lake(ctx.settings.lake_url).notes
    proof = read_proof(erasure) or _erase_and_prove(ctx, erasure, notes)
    replace_traces(ctx.catalog, notes, erasure, proof)
    ctx.guard()
    return ctx.catalog.erasures.end(erasure, proof)


def _erase_and_prove(ctx: TenantContext, erasure: Erasure, notes: LakeNotes) -> Mapping[str, Any]:
    if not has_traces(erasure):
        dead = _find_dead_keys(ctx, erasure, find_needed_keys(ctx))
        ctx.guard()
        erasure = keep_traces(ctx.catalog, notes, erasure, collect_traces(ctx, erasure, dead))
    traces = drop_living_traces(ctx, read_traces(notes, erasure))
    _erase_everywhere(ctx, erasure)
    proof = _expunge(ctx, erasure, traces)
    ctx.guard()
    return proof


def purge_documents(ctx: TenantContext, document_ids: Collection[str], *, by: str) -> Receipt:
    """Erase documents on request from every store and file; the receipt proves it.

    Raises:
        UnknownDocument: one of the documents has no data in the tenant.
        OnHold: one of the documents is held.
        CatalogSetBack: the catalog was restored from an older dump.
        ErasureIncomplete: data of the documents still exists; the tenant's next run continues.
    """
    require_current(ctx)
    for erasure in ctx.catalog.erasures.list_open(ctx.ref.id):
        # A second purge would not know which data the first one had already erased.
        if erasure.kind == "purge" and not {*document_ids}.isdisjoint(erasure.document_ids):
            settle_erasure(ctx, erasure)
    settle_open_erasures(ctx)
    at = ctx.clock.now()
    return settle_erasure(
        ctx, ctx.catalog.erasures.begin_purge(ctx.ref, document_ids, by=by, at=at)
    )


def _record_counts(ctx: TenantContext, erasure: Erasure) -> Erasure:
    """Record how many rows of the lake will be erased, before the first one is."""
    if "lake" in erasure.counts:
        return erasure
    counts = _count_lake_rows(ctx, erasure)
    ctx.guard()
    return ctx.catalog.erasures.record_counts(erasure, "lake", counts)


def _expunge(ctx: TenantContext, erasure: Erasure, traces: Traces) -> dict[str, Any]:
    """Remove the last copies of purged documents from events and files; return the proof."""
    ctx.guard()
    # A recorded question may quote the text.
    names = [*traces.names, *traces.document_ids]
    ctx.catalog.traces.redact(ctx.ref.id, names, traces.phrases)
    ctx.guard()
    ctx.catalog.erasures.forget(erasure)
    strays = _erase_stray_entries(ctx, traces)
    emptied = ("source_records", "held_records") if erasure.counts["records"]["records"] else ()
    if erasure.blobs:
        emptied = (*emptied, "uploads")
    proof = prove_erasure(
        ctx, traces, *_clean_files(ctx, emptied, strays), uploaded=bool(erasure.blobs)
    )
    subject = f"purged documents of tenant {ctx.ref.id!r}"
    require_nothing_left(proof["found"], subject, f"rag-assets sync {ctx.ref.id}")
    return proof


def _erase_stray_entries(ctx: TenantContext, traces: Traces) -> frozenset[str]:
    """Delete entries of builds that the catalog lacks; return the names of their indexes."""
    strays = find_remaining_entries(ctx, traces)
    for index_name, ids in strays.items():
        ctx.guard()
        ctx.store.entries.delete(index_name, ctx.ref.id, sorted(ids))
    return frozenset(strays)


def _clean_files(
    ctx: TenantContext, rewritten: Collection[str], indexes: Set[str] = frozenset()
) -> tuple[int | None, int]:
    """Remove deleted entries and rows from files; return how many entries and rows remain."""
    indexes |= {generation.index_name for generation in ctx.catalog.generations.live(ctx.ref.id)}
    deleted_entries = add_counts_left(ctx.store.indexes.expunge(name) for name in sorted(indexes))
    if ctx.store.vectors is not None:
        ctx.store.vectors.vacuum(ctx.ref.id)
    return deleted_entries, ctx.catalog.traces.vacuum([*rewritten])


def _erase_everywhere(ctx: TenantContext, erasure: Erasure) -> None:
    """Erase documents from index, lake and blobs.

    Postgres deletes its rows in the transactions that start and end an erasure.
    """
    _erase_entries(ctx)
    _erase_lake_rows(ctx, erasure)
    _erase_blobs(ctx, erasure)


def _erase_entries(ctx: TenantContext) -> None:
    delete_removed_documents(ctx)
    delete_leftover_entries(ctx)


def _erase_lake_rows(ctx: TenantContext, erasure: Erasure) -> None:
    needed = find_needed_keys(ctx)
    ctx.guard()
    dead = _find_dead_keys(ctx, erasure, needed)
    ctx.lake.compact(needed.keys_to_keep, dead)
    erase_rows(ctx, dead)


def _erase_blobs(ctx: TenantContext, erasure: Erasure) -> None:
    hashes = erasure.blobs
    if erasure.kind == "purge" and hashes:
        # A former version of a file may have been left behind unreferenced.
        hashes |= set(list_unreferenced_blobs(ctx.catalog, ctx.blobs, ctx.ref))
    for blobs in (ctx.blobs, *open_former_places(ctx.catalog, ctx.settings).blobs):
        drop_blobs(ctx.catalog, blobs, ctx.ref, hashes)


def _count_lake_rows(ctx: TenantContext, erasure: Erasure) -> Mapping[str, int]:
    needed = find_needed_keys(ctx)
    dead = _find_dead_keys(ctx, erasure, needed)
    lake, embedders = ctx.lake, needed.known.embedders or set()
    vectors = sum(len(dead.texts - lake.find_missing_vectors(id_, dead.texts)) for id_ in embedders)
    return {
        "parsed_text": len(dead.parsed - lake.find_missing_parsed(dead.parsed)),
        "chunks": len(dead.chunk_sets - lake.find_missing_chunk_sets(dead.chunk_sets)),
        "embeddings": vectors,
    }


def _find_dead_keys(ctx: TenantContext, erasure: Erasure, needed: NeededKeys) -> DeadKeys:
    """Return the keys of an erasure's documents in the lake that no other document needs."""
    if erasure.kind == "secrets":
        return _list_credential_keys(erasure, needed)
    documents = ctx.catalog.documents.find(ctx.ref.id, erasure.document_ids)
    parsed = erasure.parse_keys | {ctx.parse_key(document) for document in documents}
    chunk_sets = erasure.chunk_set_keys | {
        item.chunk_set_key for item in find_parsed_documents(ctx, documents)
    }
    dead_sets = chunk_sets - (needed.known.chunk_sets or set())
    return DeadKeys(
        parsed=parsed - (needed.known.parsed or set()),
        chunk_sets=dead_sets,
        texts=_list_text_hashes(ctx, dead_sets) - (needed.known.texts or set()),
    )


def _list_credential_keys(erasure: Erasure, needed: NeededKeys) -> DeadKeys:
    """Return the keys of texts that contain a credential, and of the chunks made from them."""
    hashes = read_hashes(erasure) - (needed.known.texts or set())
    return DeadKeys(erasure.parse_keys, erasure.chunk_set_keys, hashes)


def _list_text_hashes(ctx: TenantContext, chunk_set_keys: Collection[str]) -> set[str]:
    hashes = ctx.lake.read_chunk_hashes(chunk_set_keys)
    return {text for of_document in hashes.values() for text in of_document}
