"""Erasure: takes documents out of every store, and ends with a receipt.

An erasure is decided in one transaction (see ErasureTable); what follows may be interrupted
anywhere and is repeated as a whole by the next run.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.live_keys import NeededKeys, needed_keys
from rag_assets.pipeline.proof import Traces, prove, traces_of
from rag_assets.pipeline.publishing import clean_up, remove_deleted
from rag_assets.pipeline.slices import parsed_documents
from rag_assets.storage.catalog.erasure_rows import Erasure
from rag_assets.storage.catalog.receipts import Receipt
from rag_assets.storage.lake.model import DeadKeys


@dataclass(frozen=True, slots=True)
class ErasureStore:
    """A store that documents are taken out of.

    Attributes:
        name: in receipts.
        erase: takes out what is left of the documents.
        count: counts what will be taken out, before anything is; None: that is known from the
            catalog when the erasure begins.
    """

    name: str
    erase: Callable[[TenantContext, Erasure], None]
    count: Callable[[TenantContext, Erasure], Mapping[str, int]] | None = None


def settle_open(ctx: TenantContext) -> list[Receipt]:
    """End the tenant's erasures that were begun, by this process or by one that was killed."""
    return [settle(ctx, erasure) for erasure in ctx.catalog.erasures.open(ctx.ref.id)]


def settle(ctx: TenantContext, erasure: Erasure) -> Receipt:
    """Take the documents of an erasure out of every store, then write its receipt."""
    for store in STORES:
        if store.count is not None and store.name not in erasure.counts:
            counts = store.count(ctx, erasure)
            ctx.guard()
            erasure = ctx.catalog.erasures.note(erasure, store.name, counts)
    # What to look for is known only as long as it is there.
    dead = _dead_keys(ctx, erasure, needed_keys(ctx)) if erasure.kind == "purge" else None
    traces = None if dead is None else traces_of(ctx, erasure, dead)
    for store in STORES:
        store.erase(ctx, erasure)
    proof = None if traces is None else _expunge(ctx, erasure, traces)
    ctx.guard()
    return ctx.catalog.erasures.end(erasure, proof)


def purge(ctx: TenantContext, document_ids: Collection[str], *, by: str) -> Receipt:
    """Erase documents on request from every store and every file, and prove it.

    Args:
        ctx: of the tenant, under its lock.
        document_ids: the documents.
        by: who asked for it.

    Raises:
        UnknownDocument: the tenant has nothing of one of them.
        OnHold: one of them is held.
    """
    settle_open(ctx)
    at = ctx.clock.now()
    return settle(ctx, ctx.catalog.erasures.begin_purge(ctx.ref, document_ids, by=by, at=at))


def _expunge(ctx: TenantContext, erasure: Erasure, traces: Traces) -> dict[str, Any]:
    """Remove names and deleted rows from files, too, then look for what is left."""
    ctx.guard()
    # A question may quote the text.
    texts = [*traces.names, *traces.document_ids, *traces.phrases]
    ctx.catalog.traces.redact(ctx.ref.id, texts)
    ctx.guard()
    ctx.catalog.erasures.forget(erasure)
    indexes = {generation.index_name for generation in ctx.catalog.generations.live(ctx.ref.id)}
    deleted_entries = sum(ctx.store.indexes.expunge(name) for name in sorted(indexes))
    emptied = ("source_records", "held_records") if erasure.counts["records"]["records"] else ()
    dead_rows = ctx.catalog.traces.vacuum(emptied)
    return prove(ctx, traces, deleted_entries, dead_rows)


def _erase_entries(ctx: TenantContext, erasure: Erasure) -> None:
    remove_deleted(ctx)
    clean_up(ctx)


def _erase_rows_of_the_lake(ctx: TenantContext, erasure: Erasure) -> None:
    needed = needed_keys(ctx)
    ctx.guard()
    ctx.lake.compact(needed.kept, _dead_keys(ctx, erasure, needed))


def _count_rows_of_the_lake(ctx: TenantContext, erasure: Erasure) -> Mapping[str, int]:
    needed = needed_keys(ctx)
    dead = _dead_keys(ctx, erasure, needed)
    lake, embedders = ctx.lake, needed.known.embedders or set()
    vectors = sum(len(dead.texts - lake.missing_vectors(id_, dead.texts)) for id_ in embedders)
    return {
        "parsed_text": len(dead.parsed - lake.missing_parsed(dead.parsed)),
        "chunks": len(dead.chunk_sets - lake.missing_chunk_sets(dead.chunk_sets)),
        "embeddings": vectors,
    }


def _dead_keys(ctx: TenantContext, erasure: Erasure, needed: NeededKeys) -> DeadKeys:
    """The keys of the documents in the lake that nothing else needs."""
    documents = ctx.catalog.documents.find(ctx.ref.id, erasure.document_ids)
    parsed = erasure.parse_keys | {ctx.parse_key(document) for document in documents}
    chunk_sets = erasure.chunk_set_keys | {
        item.chunk_set_key for item in parsed_documents(ctx, documents)
    }
    dead_sets = chunk_sets - (needed.known.chunk_sets or set())
    hashes = ctx.lake.chunk_hashes(dead_sets)
    texts = {text for of_document in hashes.values() for text in of_document}
    return DeadKeys(
        parsed=parsed - (needed.known.parsed or set()),
        chunk_sets=dead_sets,
        texts=texts - (needed.known.texts or set()),
    )


STORES = (
    ErasureStore("index", _erase_entries),
    ErasureStore("lake", _erase_rows_of_the_lake, _count_rows_of_the_lake),
)
"""Every store but Postgres, whose rows go with the transactions that begin and end an erasure."""
