"""Compare the answer of a release with the answer of the present code to the same question."""

from __future__ import annotations

from typing import Any

import pytest

FIRST = 3
"""Hits at the top that stay the same, in any order except that the first stays first."""
_RANK = frozenset({"number", "score"})


def require_equal(kept: Any, present: Any) -> None:
    """Require that an answer says what the release's answer says.

    A release may rank passages by other rules. So the order of hits and their scores may differ
    below the first hit, but neither the first hits nor all hits. New fields are allowed.
    """
    if isinstance(kept, dict) and isinstance(kept.get("hits"), list):
        for part in (slice(1), slice(FIRST), slice(None)):
            of_release = _sort_hits(kept, part)
            assert keep_fields(of_release, _sort_hits(present, part)) == of_release, part
    else:
        assert keep_fields(kept, present) == kept


def _sort_hits(answer: dict[str, Any], part: slice) -> dict[str, Any]:
    """Return an answer with only a part of its hits, in a fixed order, without their ranks."""
    hits = [{k: v for k, v in hit.items() if k not in _RANK} for hit in answer["hits"][part]]
    return answer | {"hits": sorted(hits, key=lambda hit: (hit["uri"], hit["text"]))}


def keep_fields(kept: object, present: object) -> object:
    """Return a present answer without the fields that the release's answer lacks."""
    if isinstance(kept, dict) and isinstance(present, dict):
        return {name: keep_fields(kept.get(name), present.get(name)) for name in kept}
    if isinstance(kept, list) and isinstance(present, list):
        if len(kept) != len(present):
            return present
        return [keep_fields(*both) for both in zip(kept, present, strict=True)]
    if isinstance(kept, float) and isinstance(present, float):
        # The local model's vectors of a question differ by up to 0.01 between processors.
        return kept if present == pytest.approx(kept, abs=0.02) else present
    return present
