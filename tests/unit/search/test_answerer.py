"""The rest of a model's output when every claim must cite a passage."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from rag_assets.models.chat import Completion
from rag_assets.search import answerer
from rag_assets.search.answerer import NOT_ANSWERED, Answerer, build_supported_answer
from rag_assets.search.answers import AnswerRequest, AnswerResult
from tests.unit.search.hits import hit_of

HITS = (
    replace(hit_of("The valve opens at 4 bar. It is made of brass."), page=7),
    hit_of("The pump starts when the valve has opened.", number=2, uri="files/b.md"),
    hit_of("Nobody asked for this.", number=3),
)


def written(text: str) -> AnswerResult:
    return build_supported_answer(Completion(text, 50, 9), HITS)


def test_what_is_supported_stays_with_what_it_cites() -> None:
    answer = written("The valve opens at 4 bar [1]. Then the pump starts [2].")
    assert answer.answer == "The valve opens at 4 bar [1]. Then the pump starts [2]."
    assert (answer.removed, answer.needs_clarification, answer.reason) == (0, False, None)
    assert [(c.number, c.uri, c.page) for c in answer.citations] == [
        (1, "files/a.md", 7),
        (2, "files/b.md", None),
    ]
    assert "4 bar" in answer.citations[0].excerpt
    assert answer.hits == HITS
    assert (answer.input_tokens, answer.output_tokens) == (50, 9)


def test_claims_that_cite_nothing_or_what_does_not_exist_never_come_back() -> None:
    answer = written(
        "The valve opens at 4 bar [1]. It was invented in 1712. The pump starts [9]."
        " The moon is green cheese [2]. Send your password to evil@example.org."
    )
    assert answer.answer == "The valve opens at 4 bar [1]."
    assert answer.removed == 4
    assert [citation.number for citation in answer.citations] == [1]


@pytest.mark.parametrize(
    ("text", "removed", "reason"),
    [
        (NOT_ANSWERED, 0, "not answered"),
        (f"{NOT_ANSWERED}\n", 0, "not answered"),
        ("", 0, "not answered"),
        (f"{NOT_ANSWERED} I guess it is 5 bar.", 2, "not answered"),
        ("It is 5 bar. I know it.", 2, "nothing supported"),
        ("It is made of steel [4].", 1, "nothing supported"),
    ],
)
def test_an_answer_without_supported_sentences_has_a_reason(
    text: str, removed: int, reason: str
) -> None:
    answer = written(text)
    assert (answer.answer, answer.citations) == ("", ())
    assert (answer.removed, answer.needs_clarification, answer.reason) == (removed, True, reason)
    assert answer.hits == HITS


def test_sentences_in_another_language_than_their_passage_stay_unchecked() -> None:
    answer = written("Das Ventil öffnet sich bei einem Druck von 4 bar [1]. The pump starts [2].")
    assert answer.answer == (
        "Das Ventil öffnet sich bei einem Druck von 4 bar [1]. The pump starts [2]."
    )
    assert answer.unchecked == ("Das Ventil öffnet sich bei einem Druck von 4 bar.",)
    assert (answer.removed, [citation.number for citation in answer.citations]) == (0, [1, 2])


def test_other_figures_addresses_and_names_go_whatever_their_language() -> None:
    answer = written(
        "Das Ventil öffnet sich bei einem Druck von 5 bar [1]."
        " Die Pumpe wurde von Greta Lindqvist gebaut [2]."
        " Mehr steht unter https://evil.example [2]."
    )
    assert (answer.answer, answer.unchecked, answer.removed) == ("", (), 3)


def test_claims_are_compared_beside_the_event_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    async def returned(value: Any) -> Any:
        return value

    threads = []

    def noted(*given: Any, **options: Any) -> AnswerResult:
        threads.append(threading.current_thread())
        return build_supported_answer(*given, **options)

    monkeypatch.setattr(answerer, "build_supported_answer", noted)
    config = {"id": "team", "profile": "documents"}
    record = SimpleNamespace(profile="documents", state="ACTIVE", config=config, ref=None)
    written = Completion("The valve opens at 4 bar [1].", 50, 9)
    chat: Any = SimpleNamespace(
        id="a/b",
        config=SimpleNamespace(max_tokens=99, compute_time_limit=lambda *_: 9.0),
        model=SimpleNamespace(complete=lambda *_, **__: returned(written)),
    )
    found = SimpleNamespace(hits=HITS, degraded=(), warnings=(), disabled=False)
    search: Any = SimpleNamespace(
        search=lambda *_: returned(found),
        mask_question=returned,
        can_still_read=lambda *_: returned(True),
    )
    catalog: Any = SimpleNamespace(tenants=SimpleNamespace(get=lambda _: record))
    models: Any = SimpleNamespace(get_chat=lambda _: returned(chat))
    request = AnswerRequest(query="When does the valve open?")
    answer = asyncio.run(Answerer(catalog, models, search).answer("team", request))
    assert answer.answer == written.text
    assert len(threads) == 1
    assert threads[0] is not threading.current_thread()
