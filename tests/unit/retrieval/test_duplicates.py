from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.retrieval.duplicates import collapse
from rag_assets.storage.index.model import Candidate


def candidate(id_: str, text: str, uri: str) -> Candidate:
    return Candidate(id_, f"document of {uri}", "key", 1.0, uri, text)


def test_equal_texts_are_one_hit_that_names_every_document() -> None:
    found = collapse(
        [candidate("1", "a", "x.md"), candidate("2", "b", "y.md"), candidate("3", "a", "z.md")]
    )
    assert [(d.candidate.id, d.also) for d in found] == [("1", ("z.md",)), ("2", ())]


def test_a_text_that_stands_twice_in_one_document_names_it_once() -> None:
    found = collapse([candidate("1", "a", "x.md"), candidate("2", "a", "x.md")])
    assert [(d.candidate.id, d.also) for d in found] == [("1", ())]


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), max_size=12))
def test_the_first_of_each_text_stays_in_its_place_and_no_uri_is_lost(
    given_: list[tuple[str, str]],
) -> None:
    candidates = [candidate(str(n), text, uri) for n, (text, uri) in enumerate(given_)]
    found = collapse(candidates)
    assert [d.candidate.text_key for d in found] == list(dict.fromkeys(t for t, _ in given_))
    for distinct in found:
        text = distinct.candidate.text_key
        uris = {uri for other, uri in given_ if other == text}
        assert {distinct.candidate.uri, *distinct.also} == uris
        assert len(distinct.also) == len(uris) - 1
