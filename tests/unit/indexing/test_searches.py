"""The clauses that narrow a search."""

from __future__ import annotations

from datetime import UTC, datetime

from rag_assets.indexing.model import Narrowing
from rag_assets.indexing.searches import narrowed

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
LATER = datetime(2026, 11, 21, 12, 0, 0, 5_000, UTC)


def test_what_is_not_given_narrows_nothing() -> None:
    assert narrowed(Narrowing()) == []


def test_one_of_several_languages_is_enough() -> None:
    clause = {"terms": {"language": ["de", "python"]}}
    assert narrowed(Narrowing(languages=("de", "python"))) == [clause]


def test_a_span_of_time_includes_its_beginning_and_not_its_end() -> None:
    both = narrowed(Narrowing(modified_after=NOON, modified_before=LATER))
    span = {"gte": "2026-11-21T12:00:00.000Z", "lt": "2026-11-21T12:00:00.005Z"}
    assert both == [{"range": {"modified_at": span}}]
    [since] = narrowed(Narrowing(modified_after=NOON))
    assert since == {"range": {"modified_at": {"gte": "2026-11-21T12:00:00.000Z"}}}
    [until] = narrowed(Narrowing(modified_before=NOON))
    assert until == {"range": {"modified_at": {"lt": "2026-11-21T12:00:00.000Z"}}}
