"""The migrations of the catalog form one history, which ends at HEAD."""

from pathlib import Path

from alembic.script import ScriptDirectory

from rag_assets.storage.catalog import migrate


def test_head_is_the_newest_migration() -> None:
    scripts = ScriptDirectory(str(Path(migrate.__file__).parent / "migrations"))
    assert scripts.get_heads() == [migrate.HEAD]
