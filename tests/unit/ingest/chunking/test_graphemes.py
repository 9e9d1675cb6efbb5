from __future__ import annotations

from itertools import pairwise

import pytest

from rag_assets.ingest.chunking.boundaries import find_boundary_before, is_boundary


@pytest.mark.parametrize(
    ("text", "clusters"),
    [
        ("ab", ["a", "b"]),
        ("\r\n\n", ["\r\n", "\n"]),
        ("e\u0301x", ["e\u0301", "x"]),
        ("\n\u0301", ["\n", "\u0301"]),
        ("👨‍👩‍👧👍🏽", ["👨‍👩‍👧", "👍🏽"]),
        ("🇩🇪🇫🇷🇩", ["🇩🇪", "🇫🇷", "🇩"]),
        ("❤️!", ["❤️", "!"]),
        ("한국각", ["한", "국", "각"]),
        ("\u1112\u1161\u11ab\u1100", ["\u1112\u1161\u11ab", "\u1100"]),
        ("가\u11a8가", ["가\u11a8", "가"]),
        ("각\u1161", ["각", "\u1161"]),
        ("क्षि", ["क्षि"]),
        ("漢字", ["漢", "字"]),
    ],
)
def test_clusters(text: str, clusters: list[str]) -> None:
    cuts = [at for at in range(len(text) + 1) if is_boundary(text, at)]
    assert [text[a:b] for a, b in pairwise(cuts)] == clusters


def test_the_boundary_before_is_near_or_none() -> None:
    assert find_boundary_before("abe\u0301", 3, 0) == 2
    assert find_boundary_before("e\u0301", 1, 0) is None
    assert find_boundary_before("a" + "\u0301" * 1000, 900, 0) is None
