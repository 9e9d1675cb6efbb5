"""The keys of all lake rows that a build of the tenant contains, or that a sync would use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rag_assets.common.batches import batched
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.follow_up import kept_texts
from rag_assets.pipeline.generations import found_builds
from rag_assets.pipeline.slices import ParsedDocument, parsed_documents
from rag_assets.storage.catalog.builds.lake_keys import RecordedKeys
from rag_assets.storage.lake.model import LiveKeys

_BATCH = 2_000


@dataclass(frozen=True, slots=True)
class NeededKeys:
    """The keys that the lake must keep.

    Attributes:
        known: keys of every version in a live build, as `document_index` records them. Also keys of
            documents whose present content is missing from a build that syncs bring up to date:
            their rows are used when the documents are retried.
        complete: whether `known` contains all needed keys. If a version was indexed before keys
            were recorded, its keys are unknown once its document has changed.
    """

    known: LiveKeys
    complete: bool

    @property
    def kept(self) -> LiveKeys:
        """Return the keys to keep.

        While the keys of any version are unknown, all rows are kept, except the vectors of unused
        embedders.
        """
        return self.known if self.complete else LiveKeys(embedders=self.known.embedders)


def needed_keys(ctx: TenantContext) -> NeededKeys:
    """Return the keys that the lake must keep; all other rows may be deleted."""
    generations = ctx.catalog.generations.live(ctx.ref.id)
    embedders = {ctx.embedder.embedder_id, *(one.embedder_id for one in generations)}
    contexts = {
        number: build.context for number, build in found_builds(ctx, generations).items()
    } or {0: ctx}
    for number, build in contexts.items():
        record_missing(build, number, build.config_key)
    recorded = ctx.catalog.lake_keys.read_all(ctx.ref.id)
    parsed, chunk_sets = set(recorded.parsed), set(recorded.chunk_sets)
    for number, build in contexts.items():
        behind = ctx.catalog.lake_keys.list_outdated(ctx.ref.id, number, build.config_key)
        for batch in batched(behind, _BATCH):
            documents = ctx.catalog.documents.find(ctx.ref.id, batch)
            parsed.update(build.parse_key(document) for document in documents)
            chunk_sets.update(item.chunk_set_key for item in parsed_documents(build, documents))
    hashes = ctx.lake.chunk_hashes(chunk_sets)
    known = LiveKeys(
        parsed=parsed,
        chunk_sets=chunk_sets,
        texts={text for of_document in hashes.values() for text in of_document} | kept_texts(ctx),
        embedders=embedders,
    )
    return NeededKeys(known, complete=not recorded.unknown)


def record_missing(ctx: TenantContext, generation: int, key: str) -> None:
    """Record the keys of those versions that were indexed before keys were recorded."""
    for batch in batched(
        ctx.catalog.lake_keys.list_unrecorded(ctx.ref.id, generation, key), _BATCH
    ):
        parsed = parsed_documents(ctx, ctx.catalog.documents.find(ctx.ref.id, batch))
        ctx.guard()
        ctx.catalog.lake_keys.record(ctx.ref, generation, list(_keys_to_record(ctx, parsed)))


def _keys_to_record(ctx: TenantContext, parsed: Sequence[ParsedDocument]) -> Iterator[RecordedKeys]:
    for item in parsed:
        document = item.document
        yield RecordedKeys(document.document_id, ctx.parse_key(document), item.chunk_set_key)
