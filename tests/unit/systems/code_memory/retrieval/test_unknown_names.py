"""Which names in a question are reported as unknown, and when hits are left out."""

from __future__ import annotations

import asyncio
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import pytest

from rag_assets.search.model import Hit, SearchAnswer, SearchRequest
from rag_assets.search.progress import VerifiedCandidates
from rag_assets.search.recall import VerifyStep
from rag_assets.storage.index.model import Candidate
from rag_assets.systems.code_memory.retrieval import questions
from rag_assets.systems.code_memory.retrieval.questions import report_unknown_names

HIT = cast("Hit", object())


@pytest.fixture
def view(monkeypatch: pytest.MonkeyPatch) -> Mock:
    view = Mock()
    for find in (view.find_by_name, view.find_by_suffix, view.find_files_by_suffix):
        find.return_value = []
    view.find_edges_of_names.return_value.edges = []
    monkeypatch.setattr(questions, "RelationViews", lambda _: Mock(get_view=lambda _: view))
    monkeypatch.setattr(questions, "find_nearest_names", lambda *_: [])
    return view


def answer_to(
    monkeypatch: pytest.MonkeyPatch, query: str, text: str = "", leading: Any = (), **given: str
) -> SearchAnswer:
    async def confirmed(_: object, __: object, rankings: Any) -> VerifiedCandidates:
        return VerifiedCandidates(rankings, {}, 0, 0.0)

    async def rankings(_: object, __: object, wanted: Any) -> list[list[Candidate]]:
        found = [int(one.by.lower() in text.lower().split()) for one in wanted]
        return [[Candidate("1", "1", "1", 1.0, "a", "1", matched=count)] for count in found]

    monkeypatch.setattr(VerifyStep, "confirm", confirmed)
    progress = Mock(scopes=frozenset(), moved=Mock(), walk=Mock(leading=leading))
    progress.search.request = SearchRequest.of(query=query, **given)
    services: Any = Mock(searcher=Mock(rankings=AsyncMock(side_effect=rankings)))
    return asyncio.run(report_unknown_names(services, progress, SearchAnswer(hits=(HIT,))))


def test_an_unknown_name_has_no_hits(monkeypatch: pytest.MonkeyPatch, view: Mock) -> None:
    answer = answer_to(monkeypatch, "FlurbController")
    assert (answer.hits, answer.needs_clarification) == ((), True)
    assert [warning.field for warning in answer.warnings] == ["query"]


@pytest.mark.parametrize("query", ["Program.cs", "Main.kt", "Index.cshtml", "Package.swift"])
def test_a_file_name_is_known(monkeypatch: pytest.MonkeyPatch, view: Mock, query: str) -> None:
    view.find_files_by_suffix.side_effect = lambda name: [object()] if name == query else []
    answer = answer_to(monkeypatch, query)
    assert (answer.hits, answer.warnings) == ((HIT,), ())


def test_hits_of_exactly_the_name_are_kept(monkeypatch: pytest.MonkeyPatch, view: Mock) -> None:
    assert answer_to(monkeypatch, "FlurbController", leading=("1",)).hits == (HIT,)


@pytest.mark.parametrize("query", ["UserController在哪里定义", "where is FlurbController defined"])
def test_a_sentence_keeps_its_hits(monkeypatch: pytest.MonkeyPatch, view: Mock, query: str) -> None:
    answer = answer_to(monkeypatch, query)
    assert answer.hits == (HIT,)
    assert [warning.field for warning in answer.warnings] == ["query"]


@pytest.mark.parametrize("table", ["Users", "table:Users"])
def test_a_mentioned_table_is_known(
    monkeypatch: pytest.MonkeyPatch, view: Mock, table: str
) -> None:
    query, text = "where are rows deleted", "DELETE FROM users WHERE id = 1"
    answer = answer_to(monkeypatch, query, text, table_name=table)
    assert (answer.hits, answer.warnings) == ((HIT,), ())
