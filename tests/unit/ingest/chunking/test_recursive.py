from __future__ import annotations

from itertools import pairwise

import pytest

from rag_assets.common.tokens import count_text
from rag_assets.ingest.chunking.model import Passage
from rag_assets.ingest.parsing.model import ParsedText
from tests.chunking import parameters_of, passages_of

from .documents import parsed_from, prose, with_masks
from .promises import texts


def split(parsed: ParsedText, max_tokens: int = 64, overlap: int = 16) -> list[Passage]:
    return passages_of(parsed, parameters_of("recursive", max_tokens, overlap))


def endings(parsed: ParsedText, passages: list[Passage]) -> set[str]:
    """Return the white space after each passage except the last."""
    after = [parsed.text[passage.end :] for passage in passages[:-1]]
    return {rest[: len(rest) - len(rest.lstrip())] for rest in after}


@pytest.mark.parametrize(
    ("text", "separator"),
    [
        ("\n\n".join([prose(2) + "\n" + prose(1)] * 20), "\n\n"),
        ("\n".join([prose(2)] * 20), "\n"),
        (prose(40), " "),
        ("知" * 400, ""),
    ],
    ids=["paragraphs", "lines", "sentences", "characters"],
)
def test_the_largest_separator_that_is_near_is_taken(text: str, separator: str) -> None:
    parsed = parsed_from([("paragraph", text)])
    passages = split(parsed)
    assert len(passages) > 5
    assert endings(parsed, passages) == {separator}


def test_sentences_are_kept_whole_where_lines_do_not_fit() -> None:
    parsed = parsed_from([("paragraph", prose(80))])
    assert all(text.endswith(".") for text in texts(parsed, split(parsed)))


def test_headings_are_packed_like_any_paragraph_and_their_path_is_kept() -> None:
    parts = [part for n in range(20) for part in (("heading", f"## {n}"), ("paragraph", prose(1)))]
    parsed = parsed_from([("heading", "# Log"), *parts])  # type: ignore[list-item]
    passages = split(parsed, 128, 16)
    assert len(passages) < 6
    assert {passage.heading_path for passage in passages} == {("Log",)}
    for before, after in pairwise(passages):
        assert before.start < after.start < before.end
    alone = split(parsed_from([("heading", "# Log"), ("heading", "## 1"), ("paragraph", "Text.")]))
    assert [passage.heading_path for passage in alone] == [("Log", "1")]


def test_the_overlap_is_as_near_to_its_limit_as_words_allow() -> None:
    parsed = parsed_from([("paragraph", prose(100))])
    for before, after in pairwise(split(parsed, 128, 30)):
        assert 24 <= count_text(parsed.text[after.start : before.end]) <= 30


def test_only_the_sentence_around_a_credential_stands_alone() -> None:
    parsed = with_masks(
        parsed_from([("paragraph", prose(9) + " Use key-abcdef now. " + prose(9))]),
        ("key-abcdef", "described-sk"),
    )
    assert "Use ********** now." in texts(parsed, split(parsed))
