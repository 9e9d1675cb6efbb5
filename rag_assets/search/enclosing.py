"""Blocks and the passages that contain them: one hit, with the block's rank and location.

A block matches a question more precisely, but rarely holds the full answer. Many blocks of one long
page would also leave no room for other documents. So a ranking counts a passage at its own rank or
the rank of its best block, whichever is higher, and the passage is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag_assets.storage.index.model import Candidate


@dataclass(frozen=True, slots=True)
class Enclosed:
    """Candidates grouped into hits.

    Attributes:
        shown: by candidate id, the candidate that is shown for it; for most candidates, the
            candidate itself.
        blocks: by the id of a shown passage, the best block in it.
    """

    shown: Mapping[str, Candidate]
    blocks: Mapping[str, Candidate]


def group_enclosed(candidates: Sequence[Candidate]) -> Enclosed:
    """Group candidates into hits; a block is its own hit if no passage that contains it was found.

    Args:
        candidates: best first. If several passages contain a block, the best passage is shown.
    """
    passages = {
        (one.document_id, one.index_key, one.ordinal): (at, one)
        for at, one in enumerate(candidates)
        if not one.within
    }
    shown: dict[str, Candidate] = {}
    blocks: dict[str, Candidate] = {}
    for one in candidates:
        version = one.document_id, one.index_key
        around = [passages[place] for n in one.within if (place := (*version, n)) in passages]
        shown[one.id] = min(around, key=lambda found: found[0])[1] if around else one
        if around:
            blocks.setdefault(shown[one.id].id, one)
    return Enclosed(shown, blocks)
