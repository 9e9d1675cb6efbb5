"""Migrations lead from one to the next, and to where a database is taken to be up to date."""

from __future__ import annotations

from pathlib import Path

from alembic.script import ScriptDirectory

from rag_assets.storage.catalog import migrate


def test_the_newest_migration_is_the_one_that_databases_are_compared_with() -> None:
    scripts = ScriptDirectory(str(Path(migrate.__file__).parent / "migrations"))
    assert scripts.get_heads() == [migrate.HEAD]
