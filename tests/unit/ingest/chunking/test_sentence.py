from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from unicode_segmentation_rs import unicode_sentences

from rag_assets.ingest.chunking.boundaries import Rank, find_unicode_sentence_cuts
from rag_assets.ingest.chunking.model import Passage
from rag_assets.ingest.parsing.model import ParsedText
from tests.chunking import parameters_of, passages_of

from .documents import parsed_from, prose, wild_texts, with_masks
from .promises import quick, texts


def split(parsed: ParsedText, max_characters: int = 300, overlap: int = 60) -> list[Passage]:
    return passages_of(parsed, parameters_of("sentence", max_characters, overlap))


def sentences(text: str) -> list[str]:
    ends = [0, *(at for at, _ in find_unicode_sentence_cuts(text, 0, len(text))), len(text)]
    return [text[a:b] for a, b in pairwise(ends)]


@pytest.mark.parametrize(
    "parts",
    [
        ["One is 3.14 of it. ", "Two? ", "“Three!” ", "Four…"],
        ["租户有索引。", "它在哪里？", "在这里！"],
        ["क्या यह ठीक है। ", "हाँ।"],
        ["هل هذا صحيح؟ ", "نعم."],
        ["A sentence that\nis wrapped\r\nover lines. ", "Another\none."],
        ["Above a blank line\n\n", "Below it.\r\n \r\n", "And again."],
        ["... ", "Dots before, and after. ... ", "End."],
    ],
)
def test_sentences_are_those_of_unicode_but_for_wrapped_lines(parts: list[str]) -> None:
    assert sentences("".join(parts)) == parts


@quick
@given(wild_texts)
def test_sentences_make_up_the_text(text: str) -> None:
    assert "".join(sentences(text)) == text
    one_line = text.replace("\n", " ").replace("\r", " ").encode("utf-8", "replace").decode()
    assert len(sentences(one_line)) <= len(unicode_sentences(one_line)) + 1


def test_a_blank_line_is_a_better_place_than_the_end_of_a_sentence() -> None:
    text = "One. Two.\n\nThree."
    assert list(find_unicode_sentence_cuts(text, 0, len(text))) == [
        (5, Rank.SENTENCE),
        (11, Rank.PARAGRAPH),
    ]


def test_passages_are_whole_sentences_and_repeat_whole_sentences() -> None:
    parsed = parsed_from([("heading", "# Log"), ("paragraph", prose(60))])
    passages = split(parsed)
    assert len(passages) > 8
    for text in texts(parsed, passages)[1:]:
        assert text.startswith("The ")
        assert text.endswith(".")
    for before, after in pairwise(passages):
        repeated = parsed.text[after.start : before.end]
        assert 0 < len(repeated) <= 60
        assert repeated.startswith("The ")
    assert {passage.heading_path for passage in passages} == {("Log",)}


def test_words_are_repeated_where_the_last_sentence_is_too_long_for_the_overlap() -> None:
    long = "A sentence of many words that nobody would ever repeat as a whole " * 3 + "ends here. "
    parsed = parsed_from([("paragraph", (long * 6).strip())])
    for before, after in pairwise(split(parsed)):
        assert 40 <= len(parsed.text[after.start : before.end]) <= 60
        assert parsed.text[after.start - 1] == " "


@pytest.mark.parametrize(("length", "whole"), [(284, True), (287, False)])
def test_a_sentence_is_cut_at_words_only_if_it_leaves_no_room(length: int, whole: bool) -> None:
    words = "word " * 60
    long = "Long " + words[: length - 6].rstrip().ljust(length - 6, "x") + "."
    assert len(long) == length
    parsed = parsed_from([("heading", "# A"), ("paragraph", f"{prose(5)} {long} {prose(5)}")])
    assert any(long in text for text in texts(parsed, split(parsed))) is whole
    assert all(text[0] != " " for text in texts(parsed, split(parsed)))


def test_only_the_sentence_around_a_credential_stands_alone() -> None:
    parsed = with_masks(
        parsed_from([("paragraph", prose(9) + "\nUse key-abcdef\nnow. " + prose(9))]),
        ("key-abcdef", "described-sk"),
    )
    assert "Use **********\nnow." in texts(parsed, split(parsed))
