"""Whether a search is repeated for documents that it did not find."""

import asyncio
from typing import cast
from unittest.mock import AsyncMock, Mock

import pytest

from rag_assets.search import read
from rag_assets.search.progress import SearchProgress
from rag_assets.search.read import GatherStep
from rag_assets.search.services import SearchServices

HITS = [Mock(id=str(number)) for number in range(5)]


@pytest.fixture(autouse=True)
def _crowded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read, "gathers_passages", lambda _: True)
    monkeypatch.setattr(read, "_gather_passages", lambda _: (HITS, True))
    monkeypatch.setattr(read, "_request_more_candidates", lambda _, most: f"{most} times")
    monkeypatch.setattr(read, "replace", lambda _, **changes: changes)


@pytest.mark.parametrize(
    ("found", "named", "are_several", "factor"),
    [
        ("aaaaa", None, True, 4),
        ("aaaab", None, False, 4),
        ("aaaaa", None, False, 0),
        ("aaaaa", ("a",), True, 0),
        ("aaaaa", ("a", "b"), True, 4),
    ],
)
def test_a_search_is_repeated_for_other_documents_only_if_there_are_some(
    found: str, named: tuple[str, ...] | None, are_several: bool, factor: int
) -> None:
    progress = Mock(passages=HITS)
    progress.search.limit = len(HITS)
    progress.search.request.filters.documents = named
    progress.confirmed.by_id = {str(at): Mock(document_id=name) for at, name in enumerate(found)}
    progress.timings.measure.return_value.__enter__ = (
        progress.timings.measure.return_value.__exit__
    ) = Mock(return_value=None)
    reader = Mock(has_several_documents=AsyncMock(return_value=are_several))
    step = GatherStep(cast("SearchServices", Mock(reader=reader)))
    repeated = asyncio.run(step.run(cast("SearchProgress", progress)))
    assert cast("object", repeated) == f"{factor} times"
