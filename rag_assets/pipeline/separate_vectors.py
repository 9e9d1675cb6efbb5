"""The separate vector store of an index: filled from the lake, compared with the catalog.

A build's row records whether searches use that store. They use it once it has every vector. They
stop using it with the transaction that records that it missed a write.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from time import sleep
from typing import Any

from rag_assets.common.batches import batched
from rag_assets.common.errors import VectorsUnavailable
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.index_comparison import find_suspects
from rag_assets.storage.catalog.builds.generations import Generation, VectorsBeside
from rag_assets.storage.catalog.documents.versions import HeldVersion
from rag_assets.storage.index.model import Owner, StoredEntry, make_entry_id_function
from rag_assets.storage.index.pgvector.tables import PgVectors, build_row_of_stored

_BATCH = 1_000
_READING_SECONDS = 1.0
"""Searches that read the build's row before a change may read its vectors in this store for so
long."""
_MAX_SINGLE_READS = 20
"""Up to this many documents are read one at a time; more are read in one scan."""


@dataclass(frozen=True, slots=True)
class SeparateVectorState:
    """The vectors of one build in the separate store, compared with the catalog.

    Attributes:
        unsound: number of vectors whose length is not 1.
    """

    generation: Generation
    differing: frozenset[str]
    unsound: int = 0

    @property
    def is_healthy(self) -> bool:
        """Return whether the store has exactly the vectors that it should."""
        return not self.differing and not self.unsound


def compare_separate_vectors(ctx: TenantContext) -> list[SeparateVectorState]:
    """Compare separately stored vectors with the catalog, for every live build that has some."""
    return [
        SeparateVectorState(
            generation,
            frozenset(_find_differing_documents(ctx, vectors, generation)),
            vectors.count_unsound(ctx.owner(generation)),
        )
        for vectors, generation in _list_separate_builds(ctx)
    ]


def fill_vectors(ctx: TenantContext, generation: Generation, vectors: PgVectors) -> Generation:
    """Copy missing vectors to the separate store and delete surplus ones; searches then use it.

    No text is embedded. If this is interrupted, the next call continues.

    Returns:
        The build with its new state: "filling" if entries of the index are missing or were altered.
    """
    vectors.require()
    owner, table = ctx.owner(generation), ctx.catalog.generations
    if generation.vectors_beside is None:
        # Write the row first: tables that no row records are deleted as unreferenced.
        ctx.guard()
        generation = table.set_vectors_state(ctx.ref, generation, "filling")
    differing = _find_differing_documents(ctx, vectors, generation)
    if differing and generation.vectors_beside == "answering":
        ctx.guard()
        generation = table.set_vectors_state(ctx.ref, generation, "filling")
    vectors.create(owner, generation.dimensions)
    if differing:
        _correct_vectors(ctx, vectors, generation, differing)
        vectors.index(owner, generation.dimensions)
        differing = _find_differing_documents(ctx, vectors, generation)
    ctx.guard()
    state: VectorsBeside = "filling" if differing else "answering"
    return table.set_vectors_state(ctx.ref, generation, state)


def drop_vectors(ctx: TenantContext, generation: Generation, vectors: PgVectors) -> Generation:
    """Delete a build's vectors from the separate store; its index answers from then on."""
    ctx.guard()
    table = ctx.catalog.generations
    was_answering = generation.vectors_beside == "answering"
    generation = table.set_vectors_state(ctx.ref, generation, "filling")
    if was_answering:
        sleep(_READING_SECONDS)
    ctx.guard()
    vectors.drop(ctx.owner(generation))
    return table.set_vectors_state(ctx.ref, generation, None)


def repair_vectors(ctx: TenantContext) -> int:
    """Fill every build's separate vector store; return how many differed from the catalog."""
    differed = 0
    for vectors, generation in _list_separate_builds(ctx):
        try:
            vectors.delete_unsound(ctx.owner(generation))
            differed += bool(_find_differing_documents(ctx, vectors, generation))
            fill_vectors(ctx, generation, vectors)
        except VectorsUnavailable as error:
            ctx.log(error.message)
    return differed


def _list_separate_builds(ctx: TenantContext) -> Iterator[tuple[PgVectors, Generation]]:
    for generation in ctx.catalog.generations.live(ctx.ref.id):
        if generation.vectors_beside is not None and ctx.store.vectors is not None:
            yield ctx.store.vectors, generation


def _find_differing_documents(
    ctx: TenantContext, vectors: PgVectors, generation: Generation
) -> set[str]:
    versions = ctx.catalog.index.stream_versions(ctx.ref.id, generation.number)
    leaving = ctx.catalog.index.removals(ctx.ref.id).get(generation.number, ())
    owner = ctx.owner(generation)
    suspects = find_suspects(
        versions,
        vectors.iter_version_counts(owner),
        set(leaving),
        ids=make_entry_id_function(owner),
    )
    return {document_id for document_id in suspects if document_id is not None}


def _correct_vectors(
    ctx: TenantContext, vectors: PgVectors, generation: Generation, differing: set[str]
) -> None:
    versions = ctx.catalog.index.stream_versions(ctx.ref.id, generation.number)
    counted = {
        version.document_id: version for version in versions if version.document_id in differing
    }
    owner = ctx.owner(generation)
    ctx.guard()
    # Correct vectors stay: a search that read the row before "filling" may be reading them.
    for documents in batched(sorted(differing), _BATCH):
        vectors.keep_only(owner, documents, _list_ids(owner, documents, counted))
    wanted = {id_: version.indexed_key for id_, version in counted.items()}
    entries = _iter_entries(ctx, generation, wanted)
    corrected = 0
    for batch in batched(entries, _BATCH):
        ctx.guard()
        corrected += vectors.write_rows(owner, _list_rows(ctx, generation, batch))
    ctx.log(
        f"generation {generation.number}: {corrected:,} vectors copied to its separate vector store"
    )


def _list_ids(
    owner: Owner, documents: Iterable[str], counted: Mapping[str, HeldVersion]
) -> list[str]:
    """Return the ids of all entries that these documents should have."""
    id_of = make_entry_id_function(owner)
    versions = (counted[id_] for id_ in documents if id_ in counted)
    return [
        id_of(version.document_id, version.indexed_key, ordinal)
        for version in versions
        for ordinal in range(version.chunk_count)
    ]


def _iter_entries(
    ctx: TenantContext, generation: Generation, wanted: Mapping[str, str]
) -> Iterator[StoredEntry]:
    """Yield the unaltered index entries of these versions, given by document and indexed_key."""
    entries, owner, name = ctx.store.entries, ctx.owner(generation), generation.index_name
    if len(wanted) <= _MAX_SINGLE_READS:
        entries_found = entries.of_documents(name, owner, wanted)
    else:
        entries_found = entries.stored(name, owner)
    for entry in entries_found:
        if entry.intact and wanted.get(entry.fields["document_id"]) == entry.index_key:
            yield entry


def _list_rows(
    ctx: TenantContext, generation: Generation, entries: Iterable[StoredEntry]
) -> list[dict[str, Any]]:
    batch = list(entries)
    hashes = {entry.fields["text_sha256"] for entry in batch}
    known = ctx.lake.vectors(generation.embedder_id, hashes).by_hash()
    return [
        build_row_of_stored(entry.id, entry.fields, known[entry.fields["text_sha256"]])
        for entry in batch
        if entry.fields["text_sha256"] in known
    ]
