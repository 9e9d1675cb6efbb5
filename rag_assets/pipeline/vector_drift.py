"""Compare vectors of entries with those in the lake, a range of texts at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rag_assets.pipeline.context import TenantContext
from rag_assets.pipeline.shares import Pace, Share
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.index.model import EntryVector

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_VECTORS_AT_ONCE = 10_000
_BYTES_OF_A_NUMBER = 4
_NORM_TOLERANCE = 1e-3
_ROUNDING = 1e-6
"""Differences up to this may come from a store that normalizes vectors; deliberate changes are
larger."""


@dataclass(frozen=True, slots=True)
class VectorDrift:
    """Documents with entries that differ from how they were written.

    Attributes:
        altered: documents with a vector that differs from the lake's.
        doubtful: documents with altered fields.
    """

    altered: frozenset[str] = frozenset()
    doubtful: frozenset[str] = frozenset()


def compare_entries(
    ctx: TenantContext, generation: Generation, share: Share, entries: int
) -> VectorDrift:
    """Compare the entries in a share with their written versions, and their vectors with the lake.

    Args:
        share: the part of the texts to compare.
        entries: about how many entries the build has.
    """
    held = {
        version.document_id: version.indexed_key
        for version in ctx.catalog.index.held_versions(ctx.ref.id, generation.number)
    }
    # Files of the lake that cannot be read are found when the lake itself is compared.
    lake = ctx.lake.readable()
    pace, owner = Pace(), ctx.owner(generation)
    found = VectorDrift()
    for hashes in share.hashes.parts(1 + entries // share.days // _VECTORS_AT_ONCE):
        stored = lake.packed_vectors(generation.embedder_id, hashes)
        live = ctx.store.entries.vectors(generation.index_name, owner, hashes)
        part = compare_vectors(held, stored, live)
        found = VectorDrift(found.altered | part.altered, found.doubtful | part.doubtful)
        pace.took(len(stored) * generation.dimensions * _BYTES_OF_A_NUMBER)
    return found


def compare_vectors(
    held: Mapping[str, str], lake: Mapping[str, bytes], live: Iterable[EntryVector]
) -> VectorDrift:
    """Compare entries with their written versions, and their vectors with those in the lake.

    Args:
        held: the indexed_key of each document.
        lake: the vectors in the lake, by text_sha256. Entries of other texts are left out. Invalid
            vectors in the lake are left out too; another check finds those.
        live: entries of a scan; entries of other versions are left out.
    """
    import numpy as np

    altered, doubtful = set(), set()
    for entry in live:
        packed = lake.get(entry.text_sha256)
        if not entry.genuine:
            doubtful.add(entry.document_id)
        elif packed is not None and held.get(entry.document_id) == entry.index_key:
            stored = np.frombuffer(packed, "<f4") if len(packed) % 4 == 0 else None
            if stored is None or not is_sound(stored):
                continue
            if entry.vector is None or not _equal(stored, entry.vector):
                altered.add(entry.document_id)
    return VectorDrift(frozenset(altered), frozenset(doubtful))


def _equal(stored: npt.NDArray[np.float32], live: npt.NDArray[np.float32]) -> bool:
    import numpy as np

    return stored.shape == live.shape and bool(np.abs(stored - live).max() <= _ROUNDING)


def is_sound(vector: npt.NDArray[np.float32]) -> bool:
    """Return whether an embedder can have made a vector: its norm must be 1."""
    import numpy as np

    return abs(float(np.linalg.norm(vector)) - 1.0) <= _NORM_TOLERANCE
