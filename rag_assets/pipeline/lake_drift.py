"""Compare the lake with the texts, chunks and vectors that the builds need."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from rag_assets.common.batches import batched
from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.shares import Share
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.builds.lake_keys import NeededVersion
from rag_assets.storage.lake.model import DamagedFile
from rag_assets.storage.lake.store import TenantLake

_DOCUMENTS_AT_ONCE = 5_000
_CHUNKS_AT_ONCE = 100_000


@dataclass(frozen=True, slots=True)
class BuildLosses:
    """Rows that one build needs and the lake has lost.

    Attributes:
        parsed, chunks, vectors: documents with a missing text, chunk or vector.
        texts: text_sha256 of the missing vectors, for chunks that the lake still has.
    """

    generation: Generation
    parsed: frozenset[str] = frozenset()
    chunks: frozenset[str] = frozenset()
    vectors: frozenset[str] = frozenset()
    texts: frozenset[str] = frozenset()

    @property
    def documents(self) -> frozenset[str]:
        """Return the documents with any missing row."""
        return self.parsed | self.chunks | self.vectors


@dataclass(frozen=True, slots=True)
class LakeDrift:
    """The difference between the rows that live builds need from the lake and the rows it has.

    Attributes:
        files: files that the tables list, but that cannot be read.
        losses: the losses of each build with missing rows.
        nowhere: by embedder_id, text_sha256 of the missing vectors that no entry of an index has
            either; these texts have to be embedded again.
        versions: how many versions were compared, in all builds.
    """

    files: tuple[DamagedFile, ...] = ()
    losses: tuple[BuildLosses, ...] = ()
    nowhere: Mapping[str, frozenset[str]] = field(default_factory=dict)
    versions: int = 0

    @property
    def none(self) -> bool:
        """Return whether the lake is complete."""
        return not (self.files or self.losses)

    @property
    def to_embed(self) -> int:
        """Return the number of texts to embed again."""
        return sum(map(len, self.nowhere.values()))

    def __str__(self) -> str:
        """Return counts only: a log line cannot hold thousands of ids."""
        lost = {id_ for of_build in self.losses for id_ in of_build.documents}
        return (
            f"{len(self.files):,} damaged files of the lake; documents of which something is"
            f" lacking: {len(lost):,}; texts to embed again: {self.to_embed:,}"
        )


def compare_lake(ctx: TenantContext, share: Share) -> LakeDrift:
    """Compare the lake with the needs of the live builds; read-only.

    Only keys are compared. The files of the share are also read completely, to find damaged ones.

    Args:
        share: the part of the files to read completely.
    """
    files = tuple(ctx.lake.damage.files(share.hashes))
    readable = ctx.lake.readable()
    losses, versions = [], 0
    for generation in ctx.catalog.generations.live(ctx.ref.id):
        if generation.state == "REMOVING":
            continue
        needed = ctx.catalog.lake_keys.list_needed(ctx.ref.id, generation.number)
        lost = BuildLosses(generation)
        for batch in batched(
            needed,
            _DOCUMENTS_AT_ONCE,
            weight=lambda version: version.chunk_count,
            most=_CHUNKS_AT_ONCE,
        ):
            versions += len(batch)
            lost = _plus(lost, _losses(readable, generation, batch))
        if lost.documents:
            losses.append(lost)
    nowhere = {
        embedder_id: lacking
        for embedder_id, texts in lacking_texts(losses).items()
        if (lacking := texts - texts_in_index(ctx, embedder_id, texts))
    }
    return LakeDrift(files, tuple(losses), nowhere, versions)


def lacking_texts(losses: Collection[BuildLosses]) -> dict[str, frozenset[str]]:
    """Return the text_sha256 of missing vectors, by embedder_id."""
    found: dict[str, frozenset[str]] = {}
    for lost in losses:
        embedder_id = lost.generation.embedder_id
        if lost.texts:
            found[embedder_id] = found.get(embedder_id, frozenset()) | lost.texts
    return found


def texts_in_index(ctx: TenantContext, embedder_id: str, texts: Collection[str]) -> set[str]:
    """Return the texts with an entry that has an embedder's vector."""
    found: set[str] = set()
    for generation in builds_of(ctx, embedder_id):
        owner = ctx.owner(generation)
        entries = ctx.store.entries.vectors(generation.index_name, owner, texts)
        found |= {e.text_sha256 for e in entries if e.genuine and e.vector is not None}
    return found


def builds_of(ctx: TenantContext, embedder_id: str) -> list[Generation]:
    """Return the live builds with vectors of this embedder."""
    live = ctx.catalog.generations.live(ctx.ref.id)
    return [one for one in live if one.embedder_id == embedder_id and one.state != "REMOVING"]


def _losses(
    lake: TenantLake, generation: Generation, versions: Collection[NeededVersion]
) -> BuildLosses:
    without_text = lake.missing_parsed({version.parse_key for version in versions})
    hashes = lake.chunk_hashes({version.chunk_set_key for version in versions})
    texts = {text for of_document in hashes.values() for text in of_document}
    without_vector = lake.missing_vectors(generation.embedder_id, texts)
    lost = [
        version
        for version in versions
        if len(hashes.get(version.chunk_set_key, ())) != version.chunk_count
    ]
    return BuildLosses(
        generation,
        parsed=frozenset(v.document_id for v in versions if v.parse_key in without_text),
        chunks=frozenset(version.document_id for version in lost),
        vectors=frozenset(
            version.document_id
            for version in (versions if without_vector else ())
            if not without_vector.isdisjoint(hashes.get(version.chunk_set_key, ()))
        ),
        texts=frozenset(without_vector),
    )


def _plus(one: BuildLosses, other: BuildLosses) -> BuildLosses:
    return BuildLosses(
        one.generation,
        one.parsed | other.parsed,
        one.chunks | other.chunks,
        one.vectors | other.vectors,
        one.texts | other.texts,
    )
