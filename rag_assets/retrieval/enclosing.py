"""Blocks, and the passages that hold them: one hit, which the block lends its rank and its place.

A block says more precisely what a question is about, and hardly ever all that answers it; and many
blocks of one long page would leave no room for others. So rankings count a passage where it or a
block in it first stands, and the passage is what is shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rag_assets.storage.index.model import Candidate


@dataclass(frozen=True, slots=True)
class Enclosed:
    """Candidates that are one hit.

    Attributes:
        shown: by the id of each candidate, the one that is shown for it; itself for most.
        blocks: by the id of a passage that is shown, the best block in it.
    """

    shown: Mapping[str, Candidate]
    blocks: Mapping[str, Candidate]


def enclosed(candidates: Sequence[Candidate]) -> Enclosed:
    """Which candidates are one hit; a block whose passages were not found stands for itself.

    Args:
        candidates: best first. Of several passages that hold a block the best one is shown for it.
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
