"""A run's numbers of statements, file openings and requests do not grow with its files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import elastic_transport
import pytest
from deltalake import DeltaTable
from sqlalchemy import event
from sqlalchemy.engine import Engine
from sqlalchemy.pool import Pool

from rag_assets.cli.sync import sync_tenant
from tests.installation import FAST, Installation

MOST_STATEMENTS = 305
"""More than half are Dagster's, of which each asset check costs some twenty."""


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Count statements, connections, openings of lake tables, and requests."""
    counts: Counter[str] = Counter()

    def statement(_c: object, _cursor: object, sql: str, *_rest: object) -> None:
        counts["columns asked for" if "pg_attribute" in sql else "statements"] += 1
        counts["tables counted"] += sql.startswith("ANALYZE")

    def connection(*_: object) -> None:
        counts["connections"] += 1

    opened, requested = DeltaTable.__init__, elastic_transport.Transport.perform_request

    def open_table(self: DeltaTable, *arguments: Any, **options: Any) -> None:
        counts["tables opened"] += 1
        opened(self, *arguments, **options)

    def request(self: Any, *arguments: Any, **options: Any) -> Any:
        counts["requests"] += 1
        return requested(self, *arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(DeltaTable, "__init__", open_table)
        patched.setattr(elastic_transport.Transport, "perform_request", request)
        event.listen(Engine, "before_cursor_execute", statement)
        event.listen(Pool, "connect", connection)
        try:
            yield counts
        finally:
            event.remove(Engine, "before_cursor_execute", statement)
            event.remove(Pool, "connect", connection)


def edit(folder: Path, files: int, text: str) -> None:
    for number in range(files):
        (folder / f"{number}.md").write_text(f"# Page {number}\n\n{text} on page {number}.\n")


def test_a_run_over_many_files_asks_no_more_often_than_one_over_a_few(
    shared_installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shared_installation.add_tenant("costs", **FAST)
    session = shared_installation.session()
    edit(folder, 40, "At first")
    assert sync_tenant(session, "costs").error is None
    costs = []
    for files, text in ((2, "Then"), (40, "Later")):
        edit(folder, files, text)
        with counted(monkeypatch) as counts:
            result = sync_tenant(session, "costs")
        assert result.error is None
        assert result.stages["search_index"]["published documents"] == files
        costs.append(counts)
    few, many = costs
    statements = [counts.pop("statements") for counts in costs]
    assert abs(statements[1] - statements[0]) <= 3, "one that Dagster sends by time, now and then"
    assert max(statements) <= MOST_STATEMENTS
    assert many == few
    assert many["columns asked for"] == 0
    assert many["tables counted"] == 0
    assert many["connections"] <= 1, "that of the tenant's lock"
    assert many["tables opened"] <= 6, "three tables, and once more for each of their writes"
    assert many["requests"] <= 17, "seven of which keep marks, and compare counts and alias"


def test_postgres_counts_the_rows_of_a_first_import(
    shared_installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = shared_installation.add_tenant("large", **FAST)
    # On a slow machine too, a slice contains more than 500 of them, which count the same.
    edit(folder, 1_500, "At first")
    with counted(monkeypatch) as counts:
        result = sync_tenant(shared_installation.session(), "large")
    assert result.error is None
    assert counts["tables counted"] >= 1, "or it compares each document with each version"
