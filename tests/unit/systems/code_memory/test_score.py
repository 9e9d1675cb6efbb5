"""Questions about source code without hits, because no text has any of their words."""

from __future__ import annotations

import asyncio
from typing import cast
from unittest.mock import Mock

import pytest

from rag_assets.search.model import SearchRequest
from rag_assets.search.progress import DistinctText, SearchProgress
from rag_assets.search.scoring import ScoreStep
from rag_assets.search.services import SearchServices
from rag_assets.storage.index.model import Candidate

NEAR = DistinctText(Candidate("1", "1", "1", 0.5, "app/users.py", "1"))


def order_of(query: str, word_scores: dict[str, float]) -> list[str]:
    """Return the remaining order of a search whose vectors found a passage."""
    search = Mock(
        floors=None, min_cosine=None, mode="hybrid", request=SearchRequest.of(query=query)
    )
    search.tenant.reads_facts, search.tenant.fact_readers = True, {"code": 1}
    progress = SearchProgress(
        search=search,
        **dict.fromkeys(("ref", "serving", "owner", "caller", "moved", "timings"), Mock()),
        principals=(),
        scopes=None,
        order=[NEAR],
        word_scores=word_scores,
    )
    score = ScoreStep(cast("SearchServices", Mock()))
    return [one.id for one in asyncio.run(score.run(progress)).order]


@pytest.mark.parametrize(
    "query",
    [
        "Benutzer anlegen",
        "Passwort vergessen",
        "Rechnung als PDF erzeugen",
        "crear usuario nuevo",
        "authentification",
        "authenticaton midleware regster",
        "Süßigkeiten",
    ],
)
def test_a_question_in_other_words_than_the_texts_is_left_to_vectors(query: str) -> None:
    assert order_of(query, {}) == ["1"]


@pytest.mark.parametrize(
    "query",
    [
        "FlurbController",
        "quantize_flurbs",
        "wibbly zxqv flompf",
        "how are pigeons painted with flurbs",
    ],
)
def test_an_identifier_or_english_words_that_occur_nowhere_have_no_hits(query: str) -> None:
    assert order_of(query, {"1": 1.0}) == ["1"]
    assert order_of(query, {}) == []
