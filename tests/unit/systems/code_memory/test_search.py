"""The steps that code memory adds to a search."""

from __future__ import annotations

import asyncio
from typing import Any, cast
from unittest.mock import Mock

import pytest

from rag_assets.common.errors import ConfigurationError
from rag_assets.models.chat import UNKNOWN_WINDOW
from rag_assets.search.model import SearchRequest
from rag_assets.search.plan import StepLists, load_installed_steps
from rag_assets.search.progress import DistinctText, ResolvedSearch, SearchProgress
from rag_assets.search.scoring import ScoreStep
from rag_assets.search.services import SearchServices
from rag_assets.storage.index.model import Candidate
from rag_assets.tenants.model import Tenant
from rag_assets.tenants.profiles import DEFAULT_PROFILE
from tests.unit.search.test_scoring import is_reranked

SERVICES = cast("SearchServices", Mock())


def test_plan_with_steps_of_code_memory_is_trusted() -> None:
    assert load_installed_steps().plan("code-memory", SERVICES).is_trusted


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (("recall", "walk", "verify", "fuse", "read"), "'walk' must come before 'recall'"),
        (("expand", "recall", "verify", "fuse", "read"), "'expand' must come after 'recall'"),
        (("recall", "verify", "expand", "fuse", "read"), "'expand' must come before 'verify'"),
    ],
)
def test_trusted_step_at_another_place_is_refused(names: tuple[str, ...], problem: str) -> None:
    added = load_installed_steps().added
    with pytest.raises(ConfigurationError, match=problem):
        StepLists(added=added, profiles={"notes": names})


NEAR = DistinctText(Candidate("1", "1", "1", 0.5, "app/users.py", "1"))


def order_of(query: str, word_scores: dict[str, float]) -> list[str]:
    """Return the remaining order of a search whose vectors found a passage."""
    request = SearchRequest.of(query=query)
    search = Mock(floors=None, min_cosine=None, mode="hybrid", request=request)
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
        *("Benutzer anlegen", "Passwort vergessen", "Rechnung als PDF erzeugen"),
        *("crear usuario nuevo", "authentification", "authenticaton midleware regster"),
        "Süßigkeiten",
    ],
)
def test_a_question_in_other_words_than_the_texts_is_left_to_vectors(query: str) -> None:
    assert order_of(query, {}) == ["1"]


@pytest.mark.parametrize(
    "query",
    [
        *("FlurbController", "quantize_flurbs", "wibbly zxqv flompf"),
        "how are pigeons painted with flurbs",
    ],
)
def test_an_identifier_or_english_words_that_occur_nowhere_have_no_hits(query: str) -> None:
    assert order_of(query, {"1": 1.0}) == ["1"]
    assert order_of(query, {}) == []


def test_the_shipped_model_does_not_rerank_code() -> None:
    code = {"chunker": {"chunker": "code"}}
    english = "How long is the notice period?"
    assert Tenant.from_config({"id": "acme", **code}).reads_facts
    assert not is_reranked(english, {"model": "ms-marco-minilm-l12"}, **code)
    assert is_reranked(english, {"folder": "/models/any"}, **code)


OWN = {"model": "shop-7b", "provider": "openai-compatible", "base_url": "https://models.example/v1"}


def tenant(chat_model: object, profile: str = "code-memory") -> Tenant:
    config: dict[str, Any] = {"id": "shop", "profile": profile, "chat_model": chat_model}
    if profile == "code-memory":
        config |= {"organization": "acme", "project": "shop"}
    return Tenant.from_config(config)


def budget(of: Tenant, **request: Any) -> int | None:
    asked = SearchRequest(query="totals", **request)
    return ResolvedSearch.resolve(of, asked, "totals", None).token_budget


@pytest.mark.parametrize(
    ("chat_model", "model", "window"),
    [
        ("gpt-4o", None, 128_000),
        ({"model": "gpt-4o", "context_window": 16_000}, None, 16_000),
        ({"model": "gpt-4o", "context_window": 16_000}, "gpt-4o", 16_000),
        ({"model": "gpt-4o", "context_window": 16_000}, "gpt-4", 8_192),
        ({**OWN, "context_window": 65_536}, None, 65_536),
        (OWN, None, UNKNOWN_WINDOW),
        (None, "shop-7b", UNKNOWN_WINDOW),
        (None, "grok-4", 256_000),
    ],
)
def test_hits_take_a_share_of_the_window(
    chat_model: object, model: str | None, window: int
) -> None:
    assert budget(tenant(chat_model), model=model) == int(0.4 * window)


def test_a_request_sets_the_budget_and_without_a_model_there_is_none() -> None:
    assert budget(tenant(OWN), token_budget=500) == 500
    assert budget(tenant(None)) is None
    assert budget(tenant(OWN, profile=DEFAULT_PROFILE)) is None


@pytest.mark.parametrize("window", [0, -5, 1_000_000_000, "many"])
def test_an_invalid_context_window_is_refused(window: object) -> None:
    with pytest.raises(ConfigurationError, match="context_window"):
        tenant({"model": "gpt-4o", "context_window": window})
