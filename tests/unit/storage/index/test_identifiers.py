from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.storage.index.identifiers import lexical_terms


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("handleHTTPError", "handlehttperror handl http error"),
        ("snake_case_name", "snake_case_nam snake case name"),
        ("kebab-case", "kebab-cas kebab case"),
        ("rag_assets.hashing", "rag_assets.hash rag asset hash"),
        ("running runs", "run run"),
        ("v2", "v2 v 2"),
        ("Straße ÜBER été", "straße über été"),
        ("Größe2 über-all", "größe2 größe 2 über-al über all"),
        ("文書", "文書"),
        ("— … !", ""),
        ("", ""),
        ("x" * 101, ""),
    ],
)
def test_words_whole_and_in_parts(text: str, terms: str) -> None:
    assert lexical_terms(text) == terms


@pytest.mark.parametrize("query", ["HTTPError", "httpError", "http_error", "http errors"])
def test_an_identifier_is_found_in_any_spelling(query: str) -> None:
    stored = set(lexical_terms("def handleHTTPError(request):").split())
    assert {"http", "error"} <= stored & set(lexical_terms(query).split())


@pytest.mark.slow
@given(text=st.text(max_size=200))
def test_terms_are_lower_case_words_without_spaces(text: str) -> None:
    terms = lexical_terms(text).split(" ")
    assert all(not any(c.isspace() for c in term) for term in terms)
    assert lexical_terms(text) == lexical_terms(text)
    assert all(len(term) <= 300 for term in terms)
