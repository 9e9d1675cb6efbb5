"""The block that supports a claim, by its words, or by its meaning if words do not decide."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from rag_assets.common.errors import ConfigurationError
from rag_assets.ingest.chunking.model import BlockPlace
from rag_assets.models.embedding.protocol import Embedder
from rag_assets.models.providers.local import get_shipped_model
from rag_assets.search.answerer import CitedHit, build_citation, compare_meanings, list_cited_hits
from rag_assets.search.hits import BlockPart
from tests.unit.search.hits import hit_of

BLOCKS = {
    "watering": "The greenhouse is watered every morning at six, before the sun is high.",
    "cats": "Cats sleep in the packing room, and are fed by whoever comes in first.",
    "pay": "Salaries are transferred on the last working day of each month.",
    "keys": "Keys of the cold store hang behind the counter.",
}
TEXT = "\n\n".join(BLOCKS.values())
PLACES = [BlockPlace(id_, 100 + TEXT.index(text)) for id_, text in BLOCKS.items()]
HIT = hit_of(TEXT, uri="https://wiki.example/p", start=100, blocks=PLACES)


def unused() -> Embedder:
    raise AssertionError("words tell the block")


def missing() -> Embedder:
    raise ConfigurationError("the model is gone", hint="reinstall it")


def cited(claim: str) -> CitedHit:
    [found] = list_cited_hits(f"{claim} [1].", [HIT])
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("claim", "block"),
    [
        ("Employees get their money at the end of the month, on a working day", "pay"),
        ("The pets have their beds in the packing room", "cats"),
        ("Plants in the greenhouse are given their drink early in the day", "watering"),
    ],
)
def test_a_claim_in_other_words_leads_to_its_block(claim: str, block: str) -> None:
    one = cited(claim)
    near = asyncio.run(compare_meanings([one], get_shipped_model))
    citation = build_citation(one, near.get(1))
    assert (citation.block_id, citation.url) == (block, f"https://wiki.example/p#{block}")
    assert BLOCKS[block] in citation.excerpt


@pytest.mark.slow
def test_meaning_tells_where_no_word_does() -> None:
    one = CitedHit(HIT, "When does the wage arrive?", cited("Keys hang there").parts)
    blank = CitedHit(HIT, one.claim, tuple(_without_share(one)))
    assert blank.is_undecided
    assert build_citation(blank).block_id != "pay"
    near = asyncio.run(compare_meanings([blank], get_shipped_model))
    assert build_citation(blank, near[1]).block_id == "pay"


def test_the_model_is_left_alone_where_words_tell_and_where_there_is_one_block() -> None:
    one = cited("Salaries are transferred on the last working day")
    assert asyncio.run(compare_meanings([one], unused)) == {}
    assert build_citation(one).block_id == "pay"
    alone = hit_of(TEXT, start=100, blocks=PLACES[:1])
    [found] = list_cited_hits("Nothing else is watered [1].", [alone])
    assert asyncio.run(compare_meanings([found], unused)) == {}


def test_an_answer_is_not_lost_for_a_model_that_cannot_be_used() -> None:
    blank = CitedHit(HIT, "wage", tuple(_without_share(cited("Keys hang there"))))
    assert asyncio.run(compare_meanings([blank], missing)) == {}
    assert build_citation(blank).block_id in BLOCKS


def test_sentences_that_cite_one_passage_count_together_and_markers_do_not() -> None:
    answer = "Keys hang behind the counter [1]. They are of the cold store [1]."
    [found] = list_cited_hits(answer, [HIT])
    assert found.claim.split() == answer.replace("[1]", "").split()
    assert build_citation(found).block_id == "keys"


def _without_share(one: CitedHit) -> list[BlockPart]:
    return [replace(part, share=0.0) for part in one.parts]
