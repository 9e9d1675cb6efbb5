"""The block of an excerpt, its address, and pages and blocks as one hit."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from rag_assets.ingest.chunking.model import BlockPlace
from rag_assets.search.answerer import build_supported_answer
from rag_assets.search.gathering import group_blocks, merge_equal_texts
from rag_assets.search.hits import (
    build_block_excerpt,
    build_block_url,
    choose_block,
    is_decided_by_words,
    list_block_parts,
)
from rag_assets.storage.index.model import Candidate
from tests.unit.search.hits import hit_of

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
    return build_block_excerpt(
        text, question, list_block_parts(text, question, blocks, offset=OFFSET)
    )


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


def test_passage_and_a_block_in_it_are_one_hit_and_two_blocks_are_two() -> None:
    def candidate(id_: str, ordinal: int, *within: int, document: str = "d") -> Candidate:
        return Candidate(id_, document, "key", 1.0, "uri", id_, ordinal, within)

    page, first, second = candidate("p", 0), candidate("b1", 1, 0), candidate("b2", 2, 0)
    elsewhere = candidate("other", 1, 0, document="e")

    def kept(*order: Candidate) -> list[str]:
        return [found.id for found in merge_equal_texts(order)]

    assert kept(page, first, second, elsewhere) == ["p", "other"]
    assert kept(first, page, second) == ["b1", "b2"]
    assert kept(elsewhere, second, first, page) == ["other", "b2", "b1"]


def test_a_block_is_shown_as_the_best_passage_that_holds_it() -> None:
    def candidate(id_: str, ordinal: int, *within: int, document: str = "d") -> Candidate:
        return Candidate(id_, document, "key", 1.0, "uri", id_, ordinal, within)

    first, second = candidate("p0", 0), candidate("p1", 1)
    in_both, in_first = candidate("b2", 2, 0, 1), candidate("b3", 3, 0)
    alone, elsewhere = candidate("b9", 9, 8), candidate("e", 0, document="e")
    found = group_blocks([in_first, second, in_both, first, alone, elsewhere])
    assert {id_: one.id for id_, one in found.shown.items()} == {
        "b3": "p0",
        "p1": "p1",
        "b2": "p1",
        "p0": "p0",
        "b9": "b9",
        "e": "e",
    }
    assert {id_: block.id for id_, block in found.blocks.items()} == {"p0": "b3", "p1": "b2"}
    # A former version of the same document holds no block of the present one.
    former = Candidate("f", "d", "former", 1.0, "uri", "f", 8)
    assert group_blocks([former, alone]).shown["b9"] == alone
