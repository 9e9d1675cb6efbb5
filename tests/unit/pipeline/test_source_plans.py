"""What becomes of documents that a source no longer holds, and of sources that fail."""

from __future__ import annotations

import pytest

from rag_assets.common.errors import ListingFailed
from rag_assets.pipeline.source_listing import Deletions, decide_deletions, require_any_listed


@pytest.mark.parametrize(
    ("vanished", "lost", "known", "is_held"),
    [
        (20, 20, 20, False),
        (21, 21, 21, True),
        (21, 20, 21, False),  # one of them was found at another place
        (30, 30, 100, False),
        (31, 31, 100, True),
        (0, 0, 0, False),
    ],
)
@pytest.mark.parametrize("allow", [False, True])
def test_vanished_documents_are_all_removed_or_all_held(
    vanished: int, lost: int, known: int, *, is_held: bool, allow: bool
) -> None:
    ids = tuple(sorted(map(str, range(vanished))))
    found = decide_deletions(ids, lost=lost, known=known, allow_deletes=allow)
    if is_held and not allow:
        reason = f"{lost} of {known} documents disappeared at once"
        assert found == Deletions(held=ids, reason=reason)
    else:
        assert found == Deletions(removed=ids)


def test_some_sources_may_fail_but_not_all() -> None:
    failures = [ListingFailed("source 'a' is gone", hint="mount it"), ListingFailed("b is gone")]
    require_any_listed([], 0)
    require_any_listed([], 2)
    require_any_listed(failures[:1], 2)
    with pytest.raises(ListingFailed, match=r"^source 'a' is gone$") as alone:
        require_any_listed(failures[:1], 1)
    assert alone.value.hint == "mount it"
    with pytest.raises(ListingFailed, match="source 'a' is gone; b is gone"):
        require_any_listed(failures, 2)
