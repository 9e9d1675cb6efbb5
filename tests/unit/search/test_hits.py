from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.common.tokens import count_text
from rag_assets.ingest.chunking.model import BlockPlace, describe_location
from rag_assets.search.answerer import build_supported_answer
from rag_assets.search.gathering import group_blocks, merge_equal_texts
from rag_assets.search.hits import (
    _find_best_range,
    build_block_excerpt,
    build_block_url,
    build_excerpt,
    choose_block,
    cut_to_budget,
    fit_whole_chains,
    is_decided_by_words,
    list_block_parts,
    remove_passages,
    truncate_hit,
)
from rag_assets.search.hits import build_hit as made
from rag_assets.search.model import Hit, PassageRange
from rag_assets.search.progress import Passage
from rag_assets.search.scoring import cap_scores
from rag_assets.storage.catalog.documents.readable import ReadableVersion
from rag_assets.storage.index.model import Candidate
from tests.unit.search.hits import hit_of

FIRST_SCHEMA = {
    "text": "Turn the wheel.", "uri": "files/a.md", "heading_path": ["A"], "start": 0, "end": 15,
    "line_start": 1, "line_end": 1, "ordinal": 0, "chunk_id": "team:a.md:0", "source_type": "file",
}  # fmt: skip


def scored_hit(fields: Mapping[str, object]) -> Hit:
    version = ReadableVersion("key", "files/a.md", "public", "c0ffee", stale=True)
    passage = Passage(Candidate("id", "document", "key", 1.0, "files/a.md", "text"), (), fields)
    return made(1, passage, 0.5, version, "wheel")


def test_a_build_of_the_first_schema_answers_until_the_present_one_is_complete() -> None:
    hit = scored_hit(FIRST_SCHEMA)
    assert (hit.text, hit.line_start) == ("Turn the wheel.", 1)
    assert (hit.media_type, hit.slide, hit.language, hit.modified_at) == (None, None, None, None)


def test_the_present_schema_has_format_place_language_and_date() -> None:
    more = {"language": "sv", "modified_at": "2026-11-21T14:35:00.123Z"}
    hit = scored_hit({**FIRST_SCHEMA, "media_type": "application/pdf", "page": 3, **more})
    assert (hit.media_type, hit.page) == ("application/pdf", 3)
    assert hit.language == "sv"
    assert hit.modified_at == datetime(2026, 11, 21, 14, 35, 0, 123_000, UTC)


def test_a_hit_of_a_document_that_changed_since_is_stale() -> None:
    hit = scored_hit(FIRST_SCHEMA)
    assert (hit.stale, hit.source_sha256) == (True, "c0ffee")


def test_a_block_that_was_found_by_itself_is_where_a_hit_leads() -> None:
    whole = {"text": "The wheel is heavy.\n\nTurn it left.", "block_id": ["a", "b"]}
    fields = {**FIRST_SCHEMA, **whole, "block_starts": [0, 21]}
    own = {"text": "Turn it left.", "start": 21, "block_id": ["b"], "block_starts": [21]}
    block = {**fields, **own}
    version = ReadableVersion("key", "files/a.md", "public", "c0ffee", stale=False)
    candidate = Candidate("id", "document", "key", 1.0, "files/a.md", "text")
    by_words = made(1, Passage(candidate, (), fields), 0.5, version, "wheel")
    by_block = made(1, Passage(candidate, (), fields, block), 0.5, version, "wheel")
    assert (by_words.block_id, by_block.block_id) == ("a", "b")
    assert (by_block.excerpt, by_block.text) == ("Turn it left.", fields["text"])
    assert by_block.url == "files/a.md#b"


@pytest.mark.parametrize(
    ("scores", "falling"),
    [
        ([3.0, 2.0, 1.0], [3.0, 2.0, 1.0]),
        ([3.0, 1.0, 2.0, None], [3.0, 1.0, 1.0, 1.0]),
        ([None, 2.0, 3.0], [2.0, 2.0, 2.0]),
        ([None], [0.0]),
        ([], []),
    ],
)
def test_no_score_exceeds_the_one_before(scores: list[float | None], falling: list[float]) -> None:
    assert cap_scores(scores) == falling


HEADING, VALVE, PUMP = "# Opening", "The valve opens at 4 bar.", "The pump starts afterwards."
TEXT = "\n\n".join((HEADING, VALVE, PUMP))
OFFSET = 100
BLOCKS = (
    BlockPlace("h", OFFSET),
    BlockPlace("valve", OFFSET + TEXT.index(VALVE)),
    BlockPlace("pump", OFFSET + TEXT.index(PUMP)),
)


@pytest.mark.parametrize(
    ("question", "block"),
    [
        ("when does the valve open?", "valve"),
        ("when does the pump start?", "pump"),
        ("opening", "valve"),
        ("at how much bar is opening?", "valve"),
    ],
)
def test_block_with_most_words_of_the_question_is_cited(question: str, block: str) -> None:
    assert shown(TEXT, question, BLOCKS)[0] == block


def test_text_before_the_first_block_belongs_to_it_and_no_block_is_none() -> None:
    assert shown(TEXT, "valve", BLOCKS[2:]) == ("pump", TEXT.replace("\n\n", " "))
    assert shown(TEXT, "valve", ()) == (None, TEXT.replace("\n\n", " "))


def test_words_of_few_blocks_count_more_than_those_of_many() -> None:
    texts = ["The boiler and the boiler valve.", "The boiler valve.", "Tea for the boiler."]
    text, blocks = laid_out(texts)
    question = "Is the boiler valve for tea?"
    parts = list_block_parts(text, question, blocks, offset=OFFSET)
    assert [part.block_id for part in parts] == ["0", "1", "2"]
    assert parts[2].share > parts[0].share == parts[1].share > 0
    assert shown(text, question, blocks)[0] == "2"
    assert sum(part.share for part in list_block_parts(text, "zebra", blocks, offset=OFFSET)) == 0


def test_excerpt_is_from_the_block_that_is_named() -> None:
    filler = "Nothing of it is said in these words, however long they go on and on. " * 5
    texts = [f"{filler}The pump hums.", "The pump is red.", f"{filler}{filler}The pump leaks oil."]
    text, blocks = laid_out(texts)
    for question, block, part in (
        ("red pump", "1", "The pump is red."),
        ("pump leaks oil", "2", "The pump leaks oil."),
    ):
        named, excerpt = shown(text, question, blocks)
        assert named == block
        assert part in excerpt
        assert len(excerpt) <= 280 + len("[...]  [...]")


def test_meaning_decides_where_words_do_not() -> None:
    parts = list_block_parts(TEXT, "bar", BLOCKS, offset=OFFSET)
    assert is_decided_by_words(parts)
    assert choose_block(parts).block_id == "valve"
    assert choose_block(parts, [0.0, 0.2, 0.9]).block_id == "pump"
    alike = list_block_parts(TEXT, "nothing of it", BLOCKS, offset=OFFSET)
    assert not is_decided_by_words(alike)
    assert is_decided_by_words(alike[:1])
    assert choose_block(alike, [0.3, 0.2, 0.1]).block_id == "h"


def shown(text: str, question: str, blocks: Sequence[BlockPlace]) -> tuple[str | None, str]:
    parts = list_block_parts(text, question, blocks, offset=OFFSET)
    return build_block_excerpt(text, question, parts)


def laid_out(texts: Sequence[str]) -> tuple[str, list[BlockPlace]]:
    """Return a passage of numbered blocks."""
    text, blocks = "", []
    for number, one in enumerate(texts):
        blocks.append(BlockPlace(str(number), OFFSET + len(text)))
        text += f"{one}\n\n"
    return text.rstrip(), blocks


@pytest.mark.parametrize(
    ("uri", "block", "url"),
    [
        ("https://wiki.example/p/1", "b 1", "https://wiki.example/p/1#b%201"),
        ("https://wiki.example/p/1", None, "https://wiki.example/p/1"),
        ("https://wiki.example/#/p/1", "b1", "https://wiki.example/#/p/1"),
    ],
)
def test_url_ends_with_the_block(uri: str, block: str | None, url: str) -> None:
    assert build_block_url(uri, block) == url


def test_citation_names_the_block_that_its_sentence_rests_on() -> None:
    hit = hit_of(TEXT, uri="https://wiki.example/p/1", start=OFFSET, blocks=BLOCKS)
    from rag_assets.models.chat import Completion

    answer = build_supported_answer(Completion("The pump starts afterwards [1].", 10, 10), [hit])
    [citation] = answer.citations
    assert (citation.block_id, citation.url) == ("pump", "https://wiki.example/p/1#pump")


def candidate(id_: str, ordinal: int, *within: int, document: str = "d") -> Candidate:
    return Candidate(id_, document, "key", 1.0, "uri", id_, ordinal, within)


def test_passage_and_a_block_in_it_are_one_hit_and_two_blocks_are_two() -> None:
    page, first, second = candidate("p", 0), candidate("b1", 1, 0), candidate("b2", 2, 0)
    elsewhere = candidate("other", 1, 0, document="e")

    def kept(*order: Candidate) -> list[str]:
        return [found.id for found in merge_equal_texts(order)]

    assert kept(page, first, second, elsewhere) == ["p", "other"]
    assert kept(first, page, second) == ["b1", "b2"]
    assert kept(elsewhere, second, first, page) == ["other", "b2", "b1"]


def test_a_block_is_shown_as_the_best_passage_that_holds_it() -> None:
    first, second = candidate("p0", 0), candidate("p1", 1)
    in_both, in_first = candidate("b2", 2, 0, 1), candidate("b3", 3, 0)
    alone, elsewhere = candidate("b9", 9, 8), candidate("e", 0, document="e")
    found = group_blocks([in_first, second, in_both, first, alone, elsewhere])
    shown_as = {"b3": "p0", "p1": "p1", "b2": "p1", "p0": "p0", "b9": "b9", "e": "e"}
    assert {id_: one.id for id_, one in found.shown.items()} == shown_as
    assert {id_: block.id for id_, block in found.blocks.items()} == {"p0": "b3", "p1": "b2"}
    # A former version of the same document holds no block of the present one.
    former = Candidate("f", "d", "former", 1.0, "uri", "f", 8)
    assert group_blocks([former, alone]).shown["b9"] == alone


SENTENCES = ["Open the valve.", "Wait for a minute, or for two.", "Then close it again!"]


def test_what_fits_stays_whole_and_the_next_is_cut_after_a_sentence() -> None:
    first, second = hit_of(" ".join(SENTENCES)), hit_of(" ".join(SENTENCES), number=2)
    room = count_text(first.text) + count_text(" ".join(SENTENCES[:2]))
    packed = cut_to_budget([first, second, first], room + 1, "valve")
    assert packed[0] == first
    assert (packed[1].text, packed[1].trimmed) == (" ".join(SENTENCES[:2]), True)
    assert packed[1].end - packed[1].start == len(packed[1].text)
    assert packed[1].excerpt == packed[1].text
    assert len(packed) == 2


def test_a_merged_hit_names_the_passages_that_are_left_of_it() -> None:
    places = [(0, 5), (3, 9), (9, 12)]
    ranges = tuple(PassageRange(f"c{n}", n, a + 100, b + 100) for n, (a, b) in enumerate(places))
    hit = replace(hit_of("abcdefghijkl"), ranges=ranges, ordinal=1, end=112)
    cut = truncate_hit(hit, "abcd")
    assert [(one.ordinal, one.end) for one in cut.ranges] == [(0, 104), (1, 104)]
    assert (cut.end, cut.trimmed) == (104, True)
    rest = remove_passages(hit, {0})
    assert rest is not None
    assert (rest.text, rest.start, rest.end) == ("defghijkl", 103, 112)
    assert (rest.ordinal, rest.chunk_id, rest.ranges) == (1, "c1", ranges[1:])
    assert remove_passages(hit, {7}) == hit
    assert remove_passages(hit, {0, 1, 2}) is None
    assert remove_passages(replace(hit, ranges=()), {1}) is None


def test_a_hit_of_which_no_sentence_fits_is_left_out() -> None:
    endless = hit_of("One sentence without any end in sight, as it were")
    assert cut_to_budget([endless], 3, "end") == []


@pytest.mark.slow
@given(
    texts=st.lists(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=6), max_size=6),
    tokens=st.integers(1, 120),
)
def test_within_a_budget_only_the_last_hit_is_trimmed(texts: list[list[str]], tokens: int) -> None:
    hits = [hit_of(" ".join(text), number=number) for number, text in enumerate(texts, start=1)]
    packed = cut_to_budget(hits, tokens, "valve")
    assert sum(count_text(found.text) for found in packed) <= tokens
    assert [found.number for found in packed] == [h.number for h in hits][: len(packed)]
    assert not any(found.trimmed for found in packed[:-1])
    for found, whole in zip(packed, hits, strict=False):
        assert whole.text.startswith(found.text)
        assert found.text.endswith((".", "!"))


def test_a_hit_that_is_cut_ends_in_an_earlier_line() -> None:
    whole = replace(hit_of("Open it.\nWait.\nClose it again."), line_start=7, line_end=9)
    [cut] = cut_to_budget([whole], count_text("Open it.\nWait."), "close")
    assert (cut.text, cut.line_start, cut.line_end) == ("Open it.\nWait.", 7, 8)


@given(
    sizes=st.lists(st.integers(1, 30), min_size=1, max_size=8),
    leads=st.lists(st.integers(0, 7), max_size=8),
    tokens=st.integers(1, 150),
)
def test_a_chain_is_packed_from_its_start(sizes: list[int], leads: list[int], tokens: int) -> None:
    sized = enumerate(sizes)
    hits = [replace(hit_of("word " * size, number=n), symbol=f"s{n}") for n, size in sized]
    paths: list[tuple[str, ...]] = [("s0",)]
    for number, lead in enumerate(leads, start=1):
        paths.append((*paths[min(lead, number - 1)], f"s{number}"))
    packed = fit_whole_chains(hits, tokens, paths)
    assert sum(count_text(hit.text) for hit in packed) <= tokens
    assert packed == [hit for hit in hits if hit in packed], "in their order"
    assert not any(hit.trimmed for hit in packed)
    held = {hit.symbol for hit in packed}
    there = {hit.symbol for hit in hits}
    for path in paths:
        if path[-1] in held:
            assert set(path) & there <= held
    if sum(count_text(hit.text) for hit in hits) <= tokens:
        assert packed == hits


FILLER = "The depot opens early and everybody drinks tea. " * 12


@pytest.mark.parametrize(
    ("places", "shown"),
    [
        ({}, ""),
        ({"page": 13}, "page 13"),
        ({"slide": 4}, "slide 4"),
        ({"sheet": "Volumes"}, "sheet Volumes"),
        ({"sheet": "Volumes", "row_start": 2, "row_end": 7}, "sheet Volumes, rows 2 to 7"),
        ({"row_start": 5, "row_end": 5}, "row 5"),
        ({"line_start": 1, "line_end": 9}, "lines 1 to 9"),
        ({"page": 2, "line_start": 1, "line_end": 9}, "page 2"),
    ],
)
def test_a_location_is_described_as_in_its_format(places: dict[str, object], shown: str) -> None:
    nowhere = replace(hit_of(""), line_start=None, line_end=None)
    assert describe_location(replace(nowhere, **places)) == shown  # type: ignore[arg-type]


def test_an_excerpt_surrounds_the_words_of_the_question() -> None:
    text = f"{FILLER}A red logger means that the box is not delivered. {FILLER}"
    shown = build_excerpt(text, "May we deliver a box whose logger is red?")
    assert "red logger means that the box is not delivered" in shown
    assert shown.startswith("[...] ")
    assert shown.endswith(" [...]")
    before, _, behind = shown.partition("logger")
    assert abs(len(before) - len(behind)) < 80


def test_an_excerpt_is_found_by_stems_and_not_by_common_words() -> None:
    text = f"What is it that you do? {FILLER} Refunding takes two days."
    assert "Refunding takes" in build_excerpt(text, "What is it that you refunded?", 60)


@pytest.mark.parametrize("length", [10, 60, 280])
def test_an_excerpt_keeps_its_length(length: int) -> None:
    shown = build_excerpt(f"{FILLER}A red logger. {FILLER}", "red logger", length)
    assert len(shown.removeprefix("[...] ").removesuffix(" [...]")) <= length


@pytest.mark.parametrize(
    ("text", "shown"),
    [("A short text", "A short text"), ("with\n\twhite  space", "with white space")],
)
def test_a_short_text_is_shown_as_it_is(text: str, shown: str) -> None:
    assert build_excerpt(text, "nothing of it") == shown


def test_without_any_word_in_common_the_beginning_is_shown() -> None:
    assert build_excerpt(FILLER, "zebra", 20) == "The depot opens [...]"


def test_one_endless_word_is_shown_whole() -> None:
    assert build_excerpt("x" * 500, "x" * 500) == "x" * 500


@given(st.lists(st.sampled_from(["", "", "a", "b", "c", "d", "ab", "bcd"]), max_size=40))
def test_the_part_with_most_different_words_is_the_first_of_such_parts(marks: list[str]) -> None:
    # Each mark is a word of two letters; its letters are the words of the question that it has.
    found = [(at, frozenset(mark)) for at, mark in enumerate(marks) if mark]
    places = [0, *accumulate(3 for _ in marks)]
    parts = [
        (len(frozenset().union(*(terms for at, terms in found if start <= at < end))), start, end)
        for start, _ in found
        for end in range(start + 1, len(marks) + 1)
        if end == start + 1 or places[end] - places[start] <= 20
    ]
    most = max((part[0] for part in parts), default=0)
    first = min((part[1:] for part in parts if part[0] == most), default=(0, min(1, len(marks))))
    assert _find_best_range(found, places, 20) == first


def test_an_excerpt_is_found_by_forms_of_words_in_the_language_of_the_text() -> None:
    filler = "Der Betrieb öffnet um sieben, und die Fahrer melden sich bei der Zentrale an. " * 6
    text = f"{filler}Die Häuser werden geprüft. {filler}"
    assert "Häuser werden geprüft" in build_excerpt(text, "Wer hat das Haus prüfen lassen?", 60)
