"""Resulting tables, compared with those of Laravel's schema builder on SQLite."""

from __future__ import annotations

from pathlib import Path

import pytest

from rag_assets.systems.code_memory.languages.php.source import PhpSource
from rag_assets.systems.code_memory.laravel.schema.reader import list_schema_facts
from rag_assets.systems.code_memory.laravel.schema.tables import resolve_tables
from rag_assets.systems.code_memory.symbols.model import FileFacts
from tests.unit.systems.code_memory.laravel.schema_truth import EXAMPLE, schema_by_laravel
from tests.unit.systems.code_memory.laravel.sqlite_tables import laravels, ours


def read(path: str, text: str) -> FileFacts:
    return FileFacts(path, "php", list_schema_facts(PhpSource(text)))


def example_files() -> tuple[list[Path], list[Path]]:
    migrations = [path for path in EXAMPLE.rglob("*.php") if path.parent.name == "migrations"]
    return sorted(migrations, key=lambda path: path.name), list(EXAMPLE.rglob("schema/*.sql"))


@pytest.mark.slow
def test_the_examples_tables_are_laravels() -> None:
    migrations, dumps = example_files()
    truth = schema_by_laravel(migrations, dumps)
    assert truth["failed"] == []

    found = resolve_tables(
        read(path.relative_to(EXAMPLE).as_posix(), path.read_text(encoding="utf-8"))
        for path in migrations
    )

    # Statements in SQL and dumps are not read, and leave their tables incomplete.
    complete = {name: ours(table) for name, table in found.tables.items() if not table.reasons}
    differing = {
        name: (mine, theirs)
        for name, mine in complete.items()
        if mine != (theirs := laravels(name, truth["tables"][name]))
    }
    assert differing == {}
    assert found.unresolved == ()
    assert len(complete) >= 30
