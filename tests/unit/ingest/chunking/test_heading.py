from __future__ import annotations

import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.common.tokens import count_text
from rag_assets.ingest.chunking.boundaries import is_boundary
from rag_assets.ingest.chunking.model import Passage
from rag_assets.ingest.parsing.model import Block, ParsedText
from tests.chunking import parameters_of, passages_of

from .documents import documents, parsed_from, prose, with_masks
from .promises import check_promises, must_repeat, quick, texts, uncovered


def split(parsed: ParsedText, max_tokens: int = 64, overlap: int = 16) -> list[Passage]:
    return passages_of(parsed, parameters_of("heading", max_tokens, overlap))


@pytest.mark.slow
@quick
@given(documents(), st.sampled_from([(128, 20), (256, 32), (400, 200)]))
def test_every_passage_that_continues_a_section_overlaps(
    parsed: ParsedText, limit: tuple[int, int]
) -> None:
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


def test_no_overlap_when_none_is_configured() -> None:
    passages = split(parsed_from([("paragraph", prose(60))]), 64, 0)
    assert len(passages) > 5
    assert all(passage.start == passage.new_start for passage in passages)


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
    endless = parsed_from([("paragraph", "alpha beta gamma delta " * 60)])
    assert {text.split()[-1] for text in texts(endless, split(endless))} <= {
        "alpha",
        "beta",
        "gamma",
        "delta",
    }


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
    parsed = parsed_from(
        [
            ("heading", "# A"),
            ("paragraph", prose(20)),
            ("heading", "## A1"),
            ("paragraph", "Short."),
            ("heading", "# B"),
            ("paragraph", "Also short."),
        ]
    )
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


def test_front_matter_is_no_prose() -> None:
    parsed = parsed_from([("front_matter", "---\ntitle: X\n---"), ("paragraph", "Text.")])
    assert texts(parsed, split(parsed)) == ["Text."]


@pytest.mark.parametrize("text", ["", " \n\t\n ", "\ufeff".strip("\ufeff") + "\u2003"])
def test_blank_documents_have_no_passages(text: str) -> None:
    assert split(ParsedText(text, ())) == []
    assert split(ParsedText(text, (Block("paragraph", 0, len(text)),))) == []


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
    parsed = with_masks(
        parsed_from([("paragraph", prose(10) + " Use key-abcdef now. " + prose(10))]),
        ("key-abcdef", "described-sk"),
    )
    passages = split(parsed)
    (mask,) = parsed.masked
    touching = [p for p in passages if p.start < mask.end and p.end > mask.start]
    assert texts(parsed, touching) == ["Use ********** now."]
    after = passages[passages.index(touching[0]) + 1]
    assert after.start == after.new_start
