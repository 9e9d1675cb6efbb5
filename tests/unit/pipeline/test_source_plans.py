"""What becomes of documents that a source no longer holds, and of sources that fail."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.common.errors import ListingFailed
from rag_assets.pipeline.source_plans import Deletions, decide_deletions, require_any_listed

vanished = st.sets(st.integers(0, 999).map(str), max_size=60)


@pytest.mark.slow
@given(vanished=vanished, known=st.integers(0, 200), allow=st.booleans(), data=st.data())
def test_vanished_documents_are_all_removed_or_all_held(
    vanished: set[str], known: int, allow: bool, data: st.DataObject
) -> None:
    lost = data.draw(st.integers(0, len(vanished)))
    found = decide_deletions(vanished, lost=lost, known=known, allow_deletes=allow)
    held = not allow and lost > 20 and lost > 0.3 * known
    ids = tuple(sorted(vanished))
    assert found == (Deletions(held=ids) if held else Deletions(removed=ids))


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
