"""Reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009)."""

from __future__ import annotations

from collections.abc import Sequence

_K = 10


def fuse(
    rankings: Sequence[Sequence[str]], weights: Sequence[float] | None = None
) -> dict[str, float]:
    """Fuse rankings into one: each id scores the sum of 1 / (10 + rank).

    Args:
        rankings: ids, best first, without repeats.
        weights: what each ranking counts; by default all count 1.

    Returns:
        the score of every id, best first, ties broken by id.
    """
    scores: dict[str, float] = {}
    for ranking, weight in zip(rankings, weights or [1.0] * len(rankings), strict=True):
        for rank, id_ in enumerate(ranking, start=1):
            scores[id_] = scores.get(id_, 0.0) + weight / (_K + rank)
    return dict(sorted(scores.items(), key=lambda item: (-item[1], item[0])))
