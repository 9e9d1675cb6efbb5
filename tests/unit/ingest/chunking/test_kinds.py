import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unicode_segmentation_rs import unicode_sentences

from rag_assets.common.tokens import count_text
from rag_assets.ingest.chunking.boundaries import (
    Rank,
    find_boundary_before,
    find_unicode_sentence_cuts,
    is_boundary,
)
from rag_assets.ingest.chunking.kinds import ChunkParameters
from rag_assets.ingest.chunking.model import Passage
from rag_assets.ingest.parsing.markdown import parse_markdown
from rag_assets.ingest.parsing.model import Block, ParsedText
from tests.chunking import parameters_of, passages_of

from .documents import documents, parameters, parsed_from, prose, wild_texts, with_masks
from .promises import check_promises, must_repeat, quick, texts, uncovered


def split(parsed: ParsedText, max_tokens: int = 64, overlap: int = 16) -> list[Passage]:
    return passages_of(parsed, parameters_of("heading", max_tokens, overlap))


@pytest.mark.slow
@quick
@given(documents(), st.sampled_from([(128, 20), (256, 32), (400, 200)]))
def test_passages_within_a_section_overlap(parsed: ParsedText, limit: tuple[int, int]) -> None:
    starts = {block.start for block in parsed.blocks if block.kind == "heading"}
    for before, after in pairwise(split(parsed, *limit)):
        if starts.isdisjoint(range(before.end, after.new_start + 1)):
            if must_repeat(parsed, before, after, parameters_of("heading", *limit)):
                assert after.start < before.end
        else:
            assert after.start == after.new_start


@pytest.mark.slow
@quick
@given(documents())
def test_no_heading_is_parted_from_the_text_below_it(parsed: ParsedText) -> None:
    passages = split(parsed, 256, 32)
    blocks = [block for block in parsed.blocks if block.kind != "front_matter"]
    for heading, below in pairwise(blocks):
        if heading.kind == "heading" and below.kind != "heading":
            assert any(p.new_start <= heading.start and p.end > below.start for p in passages)


def test_a_long_section_overlaps_as_near_to_the_limit_as_words_allow() -> None:
    parsed = parsed_from([("heading", "# One"), ("paragraph", prose(200))])
    passages = split(parsed, 128, 30)
    assert len(passages) > 15
    for before, after in pairwise(passages):
        repeated = parsed.text[after.start : before.end]
        assert count_text(repeated) <= 30
        longer = parsed.text[parsed.text.rindex(" ", 0, after.start - 1) + 1 : before.end]
        assert count_text(longer) > 30
        assert parsed.text[after.start - 1] == " "


def test_text_without_spaces_overlaps_too() -> None:
    parsed = parsed_from([("paragraph", "知识库中的每个租户都有自己的索引" * 60)])
    passages = split(parsed, 128, 30)
    for before, after in pairwise(passages):
        assert 20 <= count_text(parsed.text[after.start : before.end]) <= 30


def test_sections_do_not_overlap() -> None:
    parsed = parsed_from(
        [("heading", "# A"), ("paragraph", prose(30)), ("heading", "# B"), ("paragraph", prose(30))]
    )
    passages = split(parsed)
    second = next(passage for passage in passages if passage.heading_path == ("B",))
    assert second.start == second.new_start == parsed.text.index("# B")


def test_paragraphs_are_kept_whole_before_sentences_and_sentences_before_words() -> None:
    paragraphs = [prose(n) for n in (3, 2, 4, 3, 2, 4)]
    parsed = parsed_from([("paragraph", paragraph) for paragraph in paragraphs])
    for text in texts(parsed, split(parsed, 64, 0)):
        assert all(part in paragraphs for part in text.split("\n\n"))
    one = parsed_from([("paragraph", prose(80))])
    assert all(text.endswith(".") for text in texts(one, split(one)))
    words = "alpha beta gamma delta "
    endless = parsed_from([("paragraph", words * 60)])
    assert {text.split()[-1] for text in texts(endless, split(endless))} <= set(words.split())


@pytest.mark.parametrize("kind", ["code", "table"])
def test_a_table_or_code_block_that_fits_is_not_cut(kind: str) -> None:
    rows = "\n".join(f"| row {n} | value {n} |" for n in range(6))
    parsed = parsed_from(
        [("heading", "# A"), ("paragraph", prose(2)), (kind, rows), ("paragraph", prose(6))]  # type: ignore[list-item]
    )
    assert 50 < count_text(rows) <= 64
    passages = split(parsed)
    assert len(passages) > 2
    assert any(rows in text for text in texts(parsed, passages))


def test_a_table_over_the_limit_is_cut_between_rows() -> None:
    rows = [f"| row {n} | value {n} |" for n in range(40)]
    parsed = parsed_from([("table", "\n".join(rows))])
    for passage in split(parsed):
        new = parsed.text[passage.new_start : passage.end]
        assert set(new.split("\n")) <= set(rows)


@pytest.mark.parametrize(
    "limits", [("heading", 64, 30), ("recursive", 64, 30), ("sentence", 200, 90)]
)
def test_overlap_repeats_only_complete_rows(limits: tuple[str, int, int]) -> None:
    rows = [f"Station {n} | tide gauge of the old harbour | {n} m" for n in range(60)]
    end = [("heading", "# B"), ("paragraph", prose(1))]
    parsed = parsed_from([("heading", "# A"), *(("row", row) for row in rows), *end])
    repeated = 0
    for passage in passages_of(parsed, parameters_of(*limits)):
        overlap = parsed.text[passage.start : passage.new_start]
        assert set(overlap.split("\n")) <= {*rows, ""}
        assert not (overlap and parsed.text.startswith("# B", passage.new_start))
        repeated += bool(overlap)
    assert repeated > 5


def test_the_number_of_a_list_item_ends_no_sentence() -> None:
    items = "\n".join(f"{n}. {prose(1)}" for n in range(1, 60))
    parsed = parsed_from([("paragraph", items)])
    assert all(text.endswith("of its index.") for text in texts(parsed, split(parsed)))


def test_small_sections_share_a_passage_under_their_common_heading() -> None:
    parts: list[tuple] = [("heading", "# Changes")]
    for version in range(100):
        parts += [("heading", f"## 1.{version}"), ("paragraph", "Fix a bug.")]
    parsed = parsed_from(parts)
    passages = split(parsed, 256, 32)
    tokens = sum(passage.token_count for passage in passages)
    assert len(passages) <= 2 * tokens / 256 + 1
    assert {passage.heading_path for passage in passages} == {("Changes",)}
    assert all(text.startswith("#") for text in texts(parsed, passages))


def test_a_small_section_does_not_reach_into_the_next_chapter() -> None:
    parsed = parsed_from([
        ("heading", "# A"), ("paragraph", prose(20)), ("heading", "## A1"),
        ("paragraph", "Short."), ("heading", "# B"), ("paragraph", "Also short."),
    ])  # fmt: skip
    assert [p.heading_path for p in split(parsed)[-2:]] == [("A", "A1"), ("B",)]


def test_a_heading_without_text_goes_with_what_follows_and_leaves_the_path_alone() -> None:
    parsed = parsed_from(
        [("heading", "# A"), ("heading", "## B"), ("heading", "## C"), ("paragraph", prose(40))]
    )
    passages = split(parsed)
    assert texts(parsed, passages)[0].startswith("# A\n\n## B\n\n## C\n\nThe index")
    assert {passage.heading_path for passage in passages} == {("A", "C")}


def test_a_long_heading_keeps_the_beginning_of_a_long_sentence() -> None:
    heading, endless = "#" + " wide" * 120, "alpha" + " beta gamma alpha" * 50
    assert count_text(heading) > 110
    assert 144 < count_text(endless) < 168
    parsed = parsed_from([("heading", heading), ("paragraph", endless)])
    first = texts(parsed, split(parsed, 256, 32))[0]
    assert first.startswith(heading)
    assert "alpha beta" in first


@pytest.mark.parametrize("max_tokens", range(16, 24))
def test_the_limit_holds_where_the_first_word_costs_more_without_its_space(max_tokens: int) -> None:
    assert count_text("retrieval") > count_text(" retrieval")
    parsed = parsed_from([("paragraph", "retrieval " * 200)])
    check_promises(parsed, parameters_of("heading", max_tokens, 0))


def test_a_space_that_carries_a_mark_stays_with_it() -> None:
    parsed = ParsedText("One two three four. \u0301Five six seven eight. " * 30, ())
    passages = split(parsed)
    assert len(passages) > 5
    assert all(is_boundary(parsed.text, passage.new_start) for passage in passages)
    assert any(parsed.text[passage.new_start] == " " for passage in passages)


def test_text_that_no_block_covers_is_not_lost() -> None:
    parsed = ParsedText("one\n\ntwo\n\nthree", (Block("paragraph", 5, 8, ("H",)),))
    assert texts(parsed, split(parsed)) == ["one\n\ntwo\n\nthree"]


def test_a_cluster_longer_than_a_passage_is_torn_between_code_points() -> None:
    parsed = ParsedText("a" + "\u0301" * 2000, ())
    passages = check_promises(parsed, parameters_of("heading", 64, 16))
    assert all(unicodedata.normalize("NFC", text) for text in texts(parsed, passages))


def test_a_lone_surrogate_is_counted_and_located() -> None:
    parsed = ParsedText("broken \ud800 name " * 40, ())
    passages = split(parsed)
    assert uncovered(parsed, passages) == ""
    assert max(passage.token_count for passage in passages) <= 64


def test_masked_text_stands_alone_and_nothing_is_repeated_across_it() -> None:
    text = prose(10) + " Use key-abcdef now. " + prose(10)
    parsed = with_masks(parsed_from([("paragraph", text)]), ("key-abcdef", "described-sk"))
    passages = split(parsed)
    (mask,) = parsed.masked
    touching = [p for p in passages if p.start < mask.end and p.end > mask.start]
    assert texts(parsed, touching) == ["Use ********** now."]
    after = passages[passages.index(touching[0]) + 1]
    assert after.start == after.new_start


def split_sentences(
    parsed: ParsedText, max_characters: int = 300, overlap: int = 60
) -> list[Passage]:
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
    cuts = list(find_unicode_sentence_cuts(text, 0, len(text)))
    assert cuts == [(5, Rank.SENTENCE), (11, Rank.PARAGRAPH)]


def test_passages_are_whole_sentences_and_repeat_whole_sentences() -> None:
    parsed = parsed_from([("heading", "# Log"), ("paragraph", prose(60))])
    passages = split_sentences(parsed)
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
    for before, after in pairwise(split_sentences(parsed)):
        assert 40 <= len(parsed.text[after.start : before.end]) <= 60
        assert parsed.text[after.start - 1] == " "


@pytest.mark.parametrize(("length", "whole"), [(284, True), (287, False)])
def test_a_sentence_is_cut_at_words_only_if_it_leaves_no_room(length: int, whole: bool) -> None:
    words = "word " * 60
    long = "Long " + words[: length - 6].rstrip().ljust(length - 6, "x") + "."
    assert len(long) == length
    parsed = parsed_from([("heading", "# A"), ("paragraph", f"{prose(5)} {long} {prose(5)}")])
    assert any(long in text for text in texts(parsed, split_sentences(parsed))) is whole
    assert all(text[0] != " " for text in texts(parsed, split_sentences(parsed)))


@pytest.mark.parametrize(
    ("limits", "end"),
    [(("sentence", 300, 60), "\n"), (("recursive", 64, 16), " ")],
    ids=["sentence", "recursive"],
)
def test_the_sentence_around_a_credential_is_alone(limits: tuple[str, int, int], end: str) -> None:
    text = f"{prose(9)}{end}Use key-abcdef{end}now. {prose(9)}"
    parsed = with_masks(parsed_from([("paragraph", text)]), ("key-abcdef", "described-sk"))
    assert f"Use **********{end}now." in texts(parsed, passages_of(parsed, parameters_of(*limits)))


def split_recursively(parsed: ParsedText, max_tokens: int = 64, overlap: int = 16) -> list[Passage]:
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
    passages = split_recursively(parsed)
    assert len(passages) > 5
    assert endings(parsed, passages) == {separator}


def test_sentences_are_kept_whole_where_lines_do_not_fit() -> None:
    parsed = parsed_from([("paragraph", prose(80))])
    assert all(text.endswith(".") for text in texts(parsed, split_recursively(parsed)))


def test_headings_are_packed_like_any_paragraph_and_their_path_is_kept() -> None:
    parts = [part for n in range(20) for part in (("heading", f"## {n}"), ("paragraph", prose(1)))]
    parsed = parsed_from([("heading", "# Log"), *parts])  # type: ignore[list-item]
    passages = split_recursively(parsed, 128, 16)
    assert len(passages) < 6
    assert {passage.heading_path for passage in passages} == {("Log",)}
    for before, after in pairwise(passages):
        assert before.start < after.start < before.end
    only = parsed_from([("heading", "# Log"), ("heading", "## 1"), ("paragraph", "Text.")])
    alone = split_recursively(only)
    assert [passage.heading_path for passage in alone] == [("Log", "1")]


def test_the_overlap_is_as_near_to_its_limit_as_words_allow() -> None:
    parsed = parsed_from([("paragraph", prose(100))])
    for before, after in pairwise(split_recursively(parsed, 128, 30)):
        assert 24 <= count_text(parsed.text[after.start : before.end]) <= 30


@pytest.mark.slow
@quick
@given(st.one_of(documents().map(lambda parsed: parsed.text), wild_texts), parameters)
def test_parsed_markdown_keeps_every_promise(text: str, chosen: ChunkParameters) -> None:
    check_promises(parse_markdown(text), chosen)


def test_a_markdown_page_by_its_headings() -> None:
    page = """---
title: Front
---
# Guide

Intro.

## Install

```sh
# not a heading
make install
```

Setext
------

| a | b |
|---|---|
| 1 | 2 |
"""
    parsed = parse_markdown(page)
    passages = passages_of(parsed, parameters_of("heading", 32, 8))
    found = list(zip([p.heading_path for p in passages], texts(parsed, passages), strict=True))
    assert "Front" not in "".join(text for _, text in found)
    section = "# Guide\n\nIntro.\n\n## Install\n\n```sh\n# not a heading\nmake install\n```"
    assert found[0] == (("Guide",), section)
    assert found[1][0] == ("Guide", "Setext")
    assert found[1][1].startswith("Setext\n------\n\n| a | b |")


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
