from __future__ import annotations

import pytest

from rag_assets.systems.agent_docs.manager import WordIndex
from rag_assets.systems.agent_docs.stores import DocChunk

TEXTS = {
    "german.md": "Die Häuser werden geprüft, wenn der Zähler TBK-4092 defekt ist.",
    "english.md": "The houses are inspected if the meter TBK-4092 is broken.",
    "other.md": "The boats are painted in spring by the crew of the harbour.",
}


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["haus"], ["german.md"]),
        (["house"], ["english.md"]),
        (["tbk-4092"], ["english.md", "german.md"]),
        (["haus", "tbk-4092"], ["german.md", "english.md"]),
        (["unbekannt"], []),
    ],
)
def test_words_are_found_in_the_languages_of_the_passages(
    words: list[str], found: list[str]
) -> None:
    passages = [DocChunk.from_location("agent", path, 0, text) for path, text in TEXTS.items()]
    index = WordIndex.from_passages(passages)
    paths = {passage.id: passage.source_path for passage in passages}
    scores = index.score_passages(words)
    assert sorted(paths[id_] for id_ in scores) == sorted(found)
    best = next(iter(scores), None)
    assert best is None or index.compute_term_coverage(best, words) == 1
    assert found == [] or len(words) == 1 or paths[next(iter(scores))] == found[0]
