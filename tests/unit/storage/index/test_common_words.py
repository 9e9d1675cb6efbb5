from __future__ import annotations

import pytest

from rag_assets.storage.index.common_words import significant_words
from rag_assets.storage.index.elasticsearch.queries import ranking
from rag_assets.storage.index.model import EntryFilter, Owner, RankingRequest


@pytest.mark.parametrize(
    ("query", "left"),
    [
        ("What should a client do about TBK-4092?", "client TBK-4092"),
        ("How do I reset the lock_timeout of IT in the US?", "reset lock_timeout IT US"),
        ("Wie lange dauert die Probezeit?", "Wie lange dauert die Probezeit"),
        ("what is this and how", "what is this and how"),
        ("?!", "?!"),
    ],
)
def test_common_words_are_dropped(query: str, left: str) -> None:
    assert significant_words(query) == left


def test_a_ranking_by_words_searches_significant_words_only() -> None:
    wanted = RankingRequest("What does the handheld do?", 3, EntryFilter())
    prose, terms = ranking(Owner("acme", "1", 1), wanted)["query"]["bool"]["should"]
    assert prose["multi_match"]["query"] == "handheld"
    [term] = terms["bool"]["should"]
    assert term["term"]["terms"]["value"] == "handheld"
