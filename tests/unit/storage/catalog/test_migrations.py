"""The catalog's migrations form one history, which ends at HEAD; unknown revisions are refused."""

from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.script import ScriptDirectory

from rag_assets.common.errors import ConfigurationError, SchemaTooNew
from rag_assets.plugins.registry import InstalledSystem
from rag_assets.plugins.system import Migrations, System
from rag_assets.storage.catalog import migrate

CORE = migrate._History("alembic_version", migrate.HEAD)
ALEMBIC = """
revision, down_revision = "27c6a30d7c24", None
"""


def test_head_is_the_newest_migration() -> None:
    scripts = ScriptDirectory(str(Path(migrate.__file__).parent / "migrations"))
    assert scripts.get_heads() == [migrate.HEAD]


@pytest.fixture
def glossary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> migrate._History:
    """Create a system whose migrations have the random revisions that Alembic generates."""
    package = tmp_path / "migrations_of_a_glossary"
    package.mkdir()
    (package / "27c6a30d7c24_terms.py").write_text(ALEMBIC)
    monkeypatch.syspath_prepend(tmp_path)
    system = System(
        name="glossary",
        tables={"terms": "glossary:terms"},
        migrations=Migrations(package=package.name, head="27c6a30d7c24"),
    )
    owner = InstalledSystem(system, "glossary-package 1.0")
    return migrate._History("alembic_version_glossary", "27c6a30d7c24", owner)


def upgrade(history: migrate._History, present: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(migrate, "_find_revision", lambda *_: present)
    with sa.create_engine("sqlite://").connect() as connection:
        migrate._upgrade_schema(connection, history)


@pytest.mark.parametrize("present", ["1ae1027a6acf", "0000", "0002", "ffe1027a6acf"])
def test_unknown_revision_of_a_system_is_too_new_whatever_its_order(
    glossary: migrate._History, present: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        SchemaTooNew, match=f"system 'glossary' have schema revision {present}"
    ) as e:
        upgrade(glossary, present, monkeypatch)
    assert "drop" not in f"{e.value.message} {e.value.hint}"


@pytest.mark.parametrize("present", ["0099", "9000", "10000", "1ae1027a6acf", "005a"])
def test_unknown_revision_of_the_core_is_too_new(
    present: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SchemaTooNew, match=f"catalog has schema revision {present}"):
        upgrade(CORE, present, monkeypatch)


def test_files_without_the_newest_revision_give_no_advice_to_drop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A running program finds the files of another version."""
    history = migrate._History("alembic_version", "9000")
    with pytest.raises(SchemaTooNew):
        upgrade(history, "0059", monkeypatch)


def test_revision_from_before_the_first_release_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="0050, from before the first release") as e:
        upgrade(CORE, "0050", monkeypatch)
    assert "drop the schema rag_catalog" in (e.value.hint or "")
