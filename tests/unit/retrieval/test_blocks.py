"""The block that an excerpt is from, its address, and pages and blocks as one hit."""

from __future__ import annotations

import pytest

from rag_assets.ingest.chunking.block_places import BlockPlace
from rag_assets.retrieval.answerer import supported_answer
from rag_assets.retrieval.blocks import block_of_excerpt, url_of
from rag_assets.retrieval.duplicates import collapse
from rag_assets.retrieval.enclosing import enclosed
from rag_assets.storage.index.model import Candidate
from tests.unit.retrieval.hits import hit_of

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
    assert block_of_excerpt(TEXT, question, BLOCKS, offset=OFFSET) == block


def test_text_before_the_first_block_belongs_to_it_and_no_block_is_none() -> None:
    assert block_of_excerpt(TEXT, "valve", BLOCKS[2:], offset=OFFSET) == "pump"
    assert block_of_excerpt(TEXT, "valve", (), offset=OFFSET) is None


@pytest.mark.parametrize(
    ("uri", "block", "url"),
    [
        ("https://wiki.example/p/1", "b 1", "https://wiki.example/p/1#b%201"),
        ("https://wiki.example/p/1", None, "https://wiki.example/p/1"),
        ("https://wiki.example/#/p/1", "b1", "https://wiki.example/#/p/1"),
    ],
)
def test_url_ends_with_the_block(uri: str, block: str | None, url: str) -> None:
    assert url_of(uri, block) == url


def test_citation_names_the_block_that_its_sentence_rests_on() -> None:
    hit = hit_of(TEXT, uri="https://wiki.example/p/1", start=OFFSET, blocks=BLOCKS)
    from rag_assets.models.chat.protocol import Completion

    answer = supported_answer(Completion("The pump starts afterwards [1].", 10, 10), [hit])
    [citation] = answer.citations
    assert (citation.block_id, citation.url) == ("pump", "https://wiki.example/p/1#pump")


def test_passage_and_a_block_in_it_are_one_hit_and_two_blocks_are_two() -> None:
    def candidate(id_: str, ordinal: int, *within: int, document: str = "d") -> Candidate:
        return Candidate(id_, document, "key", 1.0, "uri", id_, ordinal, within)

    page, first, second = candidate("p", 0), candidate("b1", 1, 0), candidate("b2", 2, 0)
    elsewhere = candidate("other", 1, 0, document="e")

    def kept(*order: Candidate) -> list[str]:
        return [found.id for found in collapse(order)]

    assert kept(page, first, second, elsewhere) == ["p", "other"]
    assert kept(first, page, second) == ["b1", "b2"]
    assert kept(elsewhere, second, first, page) == ["other", "b2", "b1"]


def test_a_block_is_shown_as_the_best_passage_that_holds_it() -> None:
    def candidate(id_: str, ordinal: int, *within: int, document: str = "d") -> Candidate:
        return Candidate(id_, document, "key", 1.0, "uri", id_, ordinal, within)

    first, second = candidate("p0", 0), candidate("p1", 1)
    in_both, in_first = candidate("b2", 2, 0, 1), candidate("b3", 3, 0)
    alone, elsewhere = candidate("b9", 9, 8), candidate("e", 0, document="e")
    found = enclosed([in_first, second, in_both, first, alone, elsewhere])
    assert {id_: one.id for id_, one in found.shown.items()} == {
        "b3": "p0",
        "p1": "p1",
        "b2": "p1",
        "p0": "p0",
        "b9": "b9",
        "e": "e",
    }
    assert {id_: one.id for id_, one in found.blocks.items()} == {"p0": "b3", "p1": "b2"}
    # A former version of the same document holds no block of the present one.
    former = Candidate("f", "d", "former", 1.0, "uri", "f", 8)
    assert enclosed([former, alone]).shown["b9"] == alone
