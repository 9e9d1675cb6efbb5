from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.search.progress import DistinctText
from rag_assets.storage.index.model import Candidate
from rag_assets.systems.code_memory.retrieval.steps.spread import spread_files


def build_order(files: str) -> list[DistinctText]:
    """Return candidates in order, one for each letter, which is the name of its file."""
    return [
        DistinctText(Candidate(f"{letter}{at}", letter, "k", 0.0, letter, f"{letter}{at}"))
        for at, letter in enumerate(files)
    ]


def list_files(order: list[DistinctText]) -> str:
    return "".join(distinct.candidate.uri for distinct in order)


@pytest.mark.parametrize(
    ("files", "leading", "spread"),
    [
        ("aaaaaabcdefgha", (), "aabcdefg" + "aaaa" + "ha"),
        ("aaaabaa", (), "aab" + "aaaa"),
        ("aaaabaca", ("a0", "a1", "a2"), "aaa" + "bc" + "aaa"),
    ],
    ids=["two of the first eight", "few files", "leading candidates stay"],
)
def test_a_file_has_two_of_the_first_eight_passages(
    files: str, leading: tuple[str, ...], spread: str
) -> None:
    assert list_files(spread_files(build_order(files), leading)) == spread


@given(st.text("abcdef", max_size=30), st.integers(0, 12))
def test_each_candidate_is_kept_once(files: str, leading: int) -> None:
    order = build_order(files)
    spread = spread_files(order, [distinct.id for distinct in order[:leading]])
    assert sorted(one.id for one in spread) == sorted(one.id for one in order)
    assert spread[:leading] == order[:leading]
    if not leading and sum(min(2, count) for count in Counter(files).values()) >= 8:
        assert max(Counter(list_files(spread[:8])).values()) <= 2
