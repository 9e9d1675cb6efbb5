"""The overlap of a passage with the previous passage."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate, pairwise

from rag_assets.ingest.chunking.boundaries import Rank, word_cuts
from rag_assets.ingest.chunking.graphemes import is_boundary
from rag_assets.ingest.chunking.measure import Measure

_NEIGHBOURS = 3  # maximum error of a sum of word sizes, in words


def overlap_start(text: str, low: int, high: int, limit: int, measure: Measure) -> int:
    """Return the start of the longest run of whole words at the end of text[low:high].

    Args:
        text: the document.
        low, high: start and end of the previous passage, which ends with a visible character.
        limit: maximum size of the run; at least 1.
        measure: the unit of sizes.

    Returns:
        An offset after `low`, or `low` itself if the passage is a single word. The offset lies
            inside a word if whole words would fill less than half of the limit, as in scripts
            without spaces. It is `high` if even the last visible character is larger than the
            limit.
    """
    window = measure.reach * limit
    while True:
        floor = max(low, high - window)
        words, pieces = _starts(text, floor, high)
        start, size = _longest(text, words, high, limit, measure)
        if 2 * size < limit:
            start, size = min((start, size), _longest(text, pieces, high, limit, measure))
        if floor == low or start > min(pieces, default=floor):
            break
        window *= 4
    if start == high:
        near = range(max(low, high - measure.reach * limit), high)
        start, _ = _longest(
            text, [at for at in near if is_boundary(text, at)], high, limit, measure
        )
    return start


def _starts(text: str, floor: int, high: int) -> tuple[list[int], list[int]]:
    """Return the word starts in text[floor:high], and a list that adds positions in long words.

    `floor` itself is left out: it may lie inside a word, or at the start of the whole passage.
    """
    words, pieces = [], []
    for at, rank in word_cuts(text, floor, high):
        start = at
        while start < high and text[start].isspace():
            start += 1
        if start == high or (start > at and not is_boundary(text, start)):
            continue
        pieces.append(start)
        if rank >= Rank.WORD:
            words.append(start)
    return words, pieces


def _longest(
    text: str, starts: Sequence[int], high: int, limit: int, measure: Measure
) -> tuple[int, int]:
    """Return the first start for which text[start:high] fits the limit, and the size of that text.

    The result is (high, 0) if no start fits. Sums of word sizes give a close first guess. Only the
    first word of a run has a different size than in its sentence, since the space before it is
    lost.
    """
    # Count the space before a word with it, as the tokeniser does.
    words = [text[max(0, a - 1) : b - 1] for a, b in pairwise(starts)]
    counts = measure.count([*words, *(text[max(0, start - 1) : high] for start in starts[-1:])])
    # Negated, so that the sums from each start to the end increase with the start.
    sums = [-total for total in accumulate(reversed(counts))][::-1]
    guess = max(0, bisect_left(sums, -limit) - _NEIGHBOURS)
    for at in range(guess, len(starts), 2 * _NEIGHBOURS):
        near = starts[at : at + 2 * _NEIGHBOURS]
        exact = zip(near, measure.count([text[start:high] for start in near]), strict=True)
        fitting = next((found for found in exact if found[1] <= limit), None)
        if fitting:
            return fitting
    return high, 0
