from __future__ import annotations

import pytest

from rag_assets.storage.index.common_words import is_english, significant_words
from rag_assets.storage.index.query_words import words_of


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
    words = words_of("What does the handheld do?")
    assert [*words.terms] == [*words.title_words] == ["handheld"]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What does the vuln() function do?", True),
        ("How long may I stay in bed before I need a certificate?", True),
        ("Wie lange darf ich im Bett bleiben, bevor ich ein Attest brauche?", False),
        ("Сколько дней можно болеть без справки?", False),
        ("¿Cuánto tiempo puedo quedarme en la cama?", False),
        ("valve pressure E-4711", False),
        ("阀门泄漏", False),
        ("", False),
    ],
)
def test_a_sentence_in_english_has_common_words(query: str, expected: bool) -> None:
    assert is_english(query) is expected
