"""The search step `spread`: show several files among the first hits.

A question that names a class matches each of its methods. Without this step, one file could have
all hits, and the files that use the class would have none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from rag_assets.search.progress import DistinctText, SearchProgress
from rag_assets.search.services import SearchServices, TrustedStep
from rag_assets.systems.code_memory.chunker import reads_code

_FIRST_HITS: Final = 8
_MAX_PER_FILE: Final = 2


class SpreadStep(TrustedStep):
    """Limits the number of hits of one file among the first eight hits to two."""

    after = ("fuse", "score")
    before = ("read",)

    def __init__(self, _: SearchServices) -> None: ...

    async def run(self, progress: SearchProgress) -> SearchProgress:
        """Reorder the candidates; those that the question names or quotes stay first."""
        if not reads_code(progress.search.tenant):
            return progress
        leading = progress.walk.leading if progress.walk is not None else ()
        return replace(progress, order=spread_files(progress.order, leading))


def spread_files(order: Sequence[DistinctText], leading: Collection[str]) -> list[DistinctText]:
    """Reorder candidates so that at most two of the first eight belong to the same file.

    If the other files have too few candidates, the best remaining candidates fill the positions.

    Args:
        order: the candidates, best first.
        leading: ids of the candidates that keep their positions.
    """
    chosen_texts: list[DistinctText] = []
    postponed: list[DistinctText] = []
    counts: Counter[str] = Counter()
    for distinct in order:
        uri = distinct.candidate.uri
        is_full = len(chosen_texts) >= _FIRST_HITS or counts[uri] >= _MAX_PER_FILE
        if is_full and distinct.id not in leading:
            postponed.append(distinct)
        else:
            chosen_texts.append(distinct)
            counts[uri] += 1
    return [*chosen_texts, *postponed]
