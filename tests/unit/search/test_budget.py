from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.common.tokens import count_text
from rag_assets.search.hits import cut_to_budget, fit_whole_chains, remove_passages, truncate_hit
from rag_assets.search.model import PassageRange
from tests.unit.search.hits import hit_of

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
    assert (
        cut_to_budget([hit_of("One sentence without any end in sight, as it were")], 3, "end") == []
    )


@pytest.mark.slow
@given(
    texts=st.lists(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=6), max_size=6),
    tokens=st.integers(1, 120),
)
def test_no_budget_is_overdrawn_and_only_the_last_hit_is_trimmed(
    texts: list[list[str]], tokens: int
) -> None:
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
def test_no_hit_of_a_chain_is_packed_without_what_leads_to_it(
    sizes: list[int], leads: list[int], tokens: int
) -> None:
    hits = [
        replace(hit_of("word " * size, number=number), symbol=f"s{number}")
        for number, size in enumerate(sizes)
    ]
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
