"""The keys of everything in the lake that a build of the tenant holds, or that a sync would use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rag_assets.common.batches import batched
from rag_assets.pipeline.context import TenantContext, build_of, config_key
from rag_assets.pipeline.slices import ParsedDocument, parsed_documents
from rag_assets.storage.catalog.lake_keys import RecordedKeys
from rag_assets.storage.lake.model import LiveKeys

_BATCH = 2_000


def live_keys(ctx: TenantContext) -> LiveKeys:
    """The keys that the lake must keep; all others may be let go of.

    These are the keys of every version in a live build, which `document_index` records, and those
    of documents whose present content is not in the build of the present configuration yet: what
    is computed of them is used when they are tried again.

    A version from before keys were recorded whose document has changed since is not known: then
    everything but the vectors of unused embedders is kept.
    """
    generations = ctx.catalog.generations.live(ctx.ref.id)
    embedder_id = ctx.embedder.embedder_id
    wanted = build_of(generations, ctx.tenant, embedder_id)
    number = 0 if wanted is None else wanted.number
    key = config_key(ctx.tenant, embedder_id)
    _record_missing(ctx, number, key)
    embedders = {embedder_id, *(generation.embedder_id for generation in generations)}
    recorded = ctx.catalog.lake_keys.recorded(ctx.ref.id)
    if recorded.unknown:
        return LiveKeys(embedders=embedders)
    parsed, chunk_sets = set(recorded.parsed), set(recorded.chunk_sets)
    for batch in batched(ctx.catalog.lake_keys.behind(ctx.ref.id, number, key), _BATCH):
        documents = ctx.catalog.documents.find(ctx.ref.id, batch)
        parsed.update(ctx.parse_key(document) for document in documents)
        chunk_sets.update(item.chunk_set_key for item in parsed_documents(ctx, documents))
    hashes = ctx.lake.chunk_hashes(chunk_sets)
    return LiveKeys(
        parsed=parsed,
        chunk_sets=chunk_sets,
        texts={text for of_document in hashes.values() for text in of_document},
        embedders=embedders,
    )


def _record_missing(ctx: TenantContext, generation: int, key: str) -> None:
    """Record the keys of versions that were indexed before keys were recorded."""
    for batch in batched(ctx.catalog.lake_keys.unrecorded(ctx.ref.id, generation, key), _BATCH):
        parsed = parsed_documents(ctx, ctx.catalog.documents.find(ctx.ref.id, batch))
        ctx.guard()
        ctx.catalog.lake_keys.record(ctx.ref, generation, list(_recorded(ctx, parsed)))


def _recorded(ctx: TenantContext, parsed: Sequence[ParsedDocument]) -> Iterator[RecordedKeys]:
    for item in parsed:
        document = item.document
        yield RecordedKeys(document.document_id, ctx.parse_key(document), item.chunk_set_key)
