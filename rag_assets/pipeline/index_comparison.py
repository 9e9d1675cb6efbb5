"""Compare the entries of a generation with the catalog, and their vectors with the lake.

Only `compare_entries` queries stores, a range of texts at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_assets.pipeline.context import DailyShare, RateLimiter, TenantContext
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.documents.versions import HeldVersion
from rag_assets.storage.index.model import (
    EntryVector,
    Owner,
    ScannedEntry,
    VersionCount,
    compute_checksum,
    entry_id,
)

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


_VECTORS_AT_ONCE = 10_000
_BYTES_PER_NUMBER = 4
_NORM_TOLERANCE = 1e-3
_ROUNDING = 1e-6
"""Differences up to this may come from a store that normalizes vectors; deliberate changes are
larger."""


@dataclass(frozen=True, slots=True)
class Drift:
    """The difference between a live index and the catalog, with ids of documents and entries.

    Attributes:
        expected, live: numbers of the generation's entries in the catalog and in the index.
        missing: documents with missing entries.
        altered: documents with an entry that another program changed, or whose access scope differs
            from the catalog.
        orphans: entries of this tenant that belong to no version in the catalog.
        foreign: entries that are routed to this tenant but carry another tenant's id, or vice
            versa.
        displaced: documents that the foreign entries belonged to.
        vectors: documents with an entry whose vector differs from the lake's.
    """

    expected: int
    live: int
    missing: tuple[str, ...] = ()
    altered: tuple[str, ...] = ()
    orphans: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    displaced: tuple[str, ...] = ()
    vectors: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Format the counts for a log line, which cannot hold thousands of ids."""
        return (
            f"{self.live:,} of {self.expected:,} entries; documents with entries missing:"
            f" {len(self.missing):,}, altered: {len(self.altered):,}, altered vectors:"
            f" {len(self.vectors):,}; orphaned entries: {len(self.orphans):,}, foreign:"
            f" {len(self.foreign):,}"
        )

    @property
    def is_empty(self) -> bool:
        """Return whether the index equals the catalog."""
        return not (self.damaged or self.orphans or self.foreign)

    @property
    def damaged(self) -> list[str]:
        """Return the ids of documents with entries that have to be written again."""
        return sorted({*self.missing, *self.altered, *self.displaced, *self.vectors})


@dataclass(slots=True)
class _Tally:
    key: str
    count: int
    scope: str | None
    seen: int = 0
    checksum: int = 0


def compare_index(
    versions: Iterable[HeldVersion],
    live: Iterable[ScannedEntry],
    owner: Owner,
    others: Iterable[int] = (),
    leaving: Collection[str] = (),
) -> Drift:
    """Compare the versions that the catalog records for a build with the entries of a scan.

    Memory grows with the number of documents, not with the number of entries.

    Args:
        others: numbers of the tenant's other live builds, whose entries are ignored.
        leaving: ids of deleted documents, whose entries the next sync deletes.
    """
    tallies = {
        v.document_id: _Tally(v.indexed_key, v.chunk_count, v.access_scope) for v in versions
    }
    other_generations = set(others)
    altered: set[str] = set()
    strange: dict[str, bool] = {}
    count = 0
    for entry in live:
        if entry.tenant != owner.tenant or not entry.correctly_routed:
            strange[entry.id] = True
        elif entry.incarnation == owner.incarnation and (
            entry.generation in other_generations or entry.document_id in leaving
        ):
            continue
        elif not _is_recorded_entry(entry, owner, tallies):
            strange[entry.id] = False
        else:
            count += 1
            tally = tallies[entry.document_id]
            tally.seen += 1
            if not entry.intact or tally.scope not in {None, entry.access_scope}:
                altered.add(entry.document_id)
    in_place = _find_own_entries(strange, tallies, owner) if strange else {}
    orphans = [id_ for id_, is_foreign in strange.items() if not is_foreign and id_ not in in_place]
    altered |= {in_place[id_] for id_ in in_place if not strange[id_]}
    missing = [id_ for id_, tally in tallies.items() if tally.seen < tally.count]
    return Drift(
        expected=sum(tally.count for tally in tallies.values()),
        live=count,
        missing=tuple(sorted(missing)),
        altered=tuple(sorted(altered)),
        orphans=tuple(sorted(orphans)),
        foreign=tuple(sorted(id_ for id_, is_foreign in strange.items() if is_foreign)),
        displaced=tuple(sorted({in_place[id_] for id_ in in_place if strange[id_]})),
    )


def find_suspects(
    versions: Iterable[HeldVersion],
    counts: Iterable[VersionCount],
    leaving: Collection[str] = (),
    *,
    ids: Callable[[str, str, int], str] | None = None,
) -> set[str | None]:
    """Return the ids of documents whose entries in a build differ from the catalog.

    Args:
        ids: returns the id that an entry should have (see make_entry_id_function), if the counts
            include ids; None: compare numbers alone.
    """
    tallies = {
        v.document_id: _Tally(v.indexed_key, v.chunk_count, v.access_scope) for v in versions
    }
    suspects: set[str | None] = set()
    for version in counts:
        tally = tallies.get(version.document_id or "")
        if version.document_id in leaving:
            continue
        if (
            tally is None
            or version.index_key != tally.key
            or tally.scope not in {None, version.access_scope}
        ):
            suspects.add(version.document_id)
        else:
            tally.seen += version.count
            tally.checksum += version.ids or 0
    return suspects | {
        id_ for id_, tally in tallies.items() if not _has_all_entries(id_, tally, ids)
    }


def _has_all_entries(
    document_id: str, tally: _Tally, ids: Callable[[str, str, int], str] | None
) -> bool:
    if tally.seen != tally.count:
        return False
    if ids is None:
        return True
    wanted = (ids(document_id, tally.key, ordinal) for ordinal in range(tally.count))
    return tally.checksum == compute_checksum(wanted)


def _find_own_entries(
    ids: Collection[str], tallies: Mapping[str, _Tally], owner: Owner
) -> dict[str, str]:
    """Find which of these ids missing entries should have; return the document of each id.

    These entries are this installation's own entries with changed fields. Each is counted as seen.
    """
    own_entries: dict[str, str] = {}
    for document_id, tally in tallies.items():
        if tally.seen >= tally.count:
            continue
        for ordinal in range(tally.count):
            id_ = entry_id(owner, document_id, tally.key, ordinal)
            if id_ in ids:
                own_entries[id_] = document_id
                tally.seen += 1
    return own_entries


def _is_recorded_entry(entry: ScannedEntry, owner: Owner, tallies: dict[str, _Tally]) -> bool:
    tally = tallies.get(entry.document_id)
    return (
        tally is not None
        and (entry.incarnation, entry.generation) == (owner.incarnation, owner.generation)
        and entry.index_key == tally.key
        and 0 <= entry.ordinal < tally.count
        and entry.id == entry_id(owner, entry.document_id, entry.index_key, entry.ordinal)
    )


@dataclass(frozen=True, slots=True)
class VectorDrift:
    """Documents with entries that were changed after they were written.

    Attributes:
        altered: ids of documents with a vector that differs from the lake's.
        doubtful: ids of documents with other changed fields.
    """

    altered: frozenset[str] = frozenset()
    doubtful: frozenset[str] = frozenset()


def compare_entries(
    ctx: TenantContext, generation: Generation, share: DailyShare, entries: int
) -> VectorDrift:
    """Find a build's entries with changed fields, or with a vector that differs from the lake's."""
    indexed_keys = {
        version.document_id: version.indexed_key
        for version in ctx.catalog.index.stream_versions(ctx.ref.id, generation.number)
    }
    # Files of the lake that cannot be read are found when the lake itself is compared.
    lake = ctx.lake.readable()
    pace, owner = RateLimiter(), ctx.owner(generation)
    drift = VectorDrift()
    for hashes in share.hash_range.parts(1 + entries // share.days // _VECTORS_AT_ONCE):
        stored = lake.read_packed_vectors(generation.embedder_id, hashes)
        live = ctx.store.entries.vectors(generation.index_name, owner, hashes)
        part = compare_vectors(indexed_keys, stored, live)
        drift = VectorDrift(drift.altered | part.altered, drift.doubtful | part.doubtful)
        pace.add_bytes(len(stored) * generation.dimensions * _BYTES_PER_NUMBER)
    return drift


def compare_vectors(
    indexed_keys: Mapping[str, str], lake: Mapping[str, bytes], live: Iterable[EntryVector]
) -> VectorDrift:
    """Find entries with changed fields, or with a vector that differs from the lake's.

    Args:
        indexed_keys: the indexed_key of each document.
        lake: the vectors in the lake, by text_sha256. Entries of other texts are ignored. Invalid
            vectors in the lake are ignored too; another check finds them.
        live: entries of a scan; entries of other versions are ignored.
    """
    import numpy as np

    altered, doubtful = set(), set()
    for entry in live:
        packed = lake.get(entry.text_sha256)
        if not entry.genuine:
            doubtful.add(entry.document_id)
        elif packed is not None and indexed_keys.get(entry.document_id) == entry.index_key:
            stored = np.frombuffer(packed, "<f4") if len(packed) % 4 == 0 else None
            if stored is None or not has_unit_length(stored):
                continue
            if entry.vector is None or not _are_equal(stored, entry.vector):
                altered.add(entry.document_id)
    return VectorDrift(frozenset(altered), frozenset(doubtful))


def _are_equal(stored: npt.NDArray[np.float32], live: npt.NDArray[np.float32]) -> bool:
    import numpy as np

    return stored.shape == live.shape and bool(np.abs(stored - live).max() <= _ROUNDING)


def has_unit_length(vector: npt.NDArray[np.float32]) -> bool:
    """Return whether the norm of a vector is 1, as for every vector made by an embedder."""
    import numpy as np

    return abs(float(np.linalg.norm(vector)) - 1.0) <= _NORM_TOLERANCE
