"""Valid changes of a tree, through any interface."""

from __future__ import annotations

import pytest

from rag_assets.common.errors import InvalidRequest
from rag_assets.systems.workspace.tree_service import PageDraft


@pytest.mark.parametrize("uuid", ["", "é", "a b", "a/b", "..", "_a", "a\n", "x" * 129])
def test_a_page_has_an_id_that_records_can_name(uuid: str) -> None:
    with pytest.raises(InvalidRequest, match="its id must start with a letter or digit"):
        PageDraft().build_page(uuid)
    assert PageDraft().build_page("A-1.b:c@d").uuid == "A-1.b:c@d"
