"""Tables of systems are migrated with the catalog, each system with its own history."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import psycopg
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from rag_assets.common.errors import ConfigurationError
from rag_assets.plugins.registry import InstalledSystem, Systems, installed_systems
from rag_assets.plugins.system import Migrations, System
from rag_assets.storage.catalog.database import Database
from rag_assets.storage.catalog.migrate import HEAD, build_alembic_config, migrate
from rag_assets.storage.catalog.tables import SCHEMA, metadata
from tests.installation import Installation

MIGRATION = """
from alembic import op
import sqlalchemy as sa
from rag_assets.storage.catalog.tables import SCHEMA, tenant_column

revision, down_revision = "{revision}", {before!r}

def upgrade():
    op.create_table("{table}", sa.Column("tenant", sa.Text, sa.ForeignKey(
        SCHEMA + ".tenants.id", ondelete="CASCADE")), schema=SCHEMA)

def downgrade():
    op.drop_table("{table}", schema=SCHEMA)
"""


@pytest.fixture
def database(installation: Installation) -> Iterator[Database]:
    """Create a catalog of the present version with a tenant."""
    database = Database(installation.environment["RAG_ASSETS_DATABASE_URL"])
    installation.add_tenant("acme")
    installation.session().catalog.tenants.get("acme")
    yield database
    database.close()


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "with 50% blanks"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    return folder


def system(packages: Path, name: str, tables: dict[str, str], **declared: str) -> InstalledSystem:
    """Create a system with a migration for each of its tables, by revision."""
    package = f"migrations_of_{name}_{packages.parent.name.replace('-', '_')}"
    (packages / package).mkdir(exist_ok=True)
    before: str | None = None
    for revision, table in tables.items():
        text = MIGRATION.format(revision=revision, before=before, table=table)
        (packages / package / f"{revision}_{table}.py").write_text(text)
        before = revision
    migrations = Migrations(package=package, head=declared.get("head", before or ""))
    value = System(
        name=name, tables={one: f"{name}:{one}" for one in tables.values()}, migrations=migrations
    )
    return InstalledSystem(value, f"{name}-package 1.0")


def tables(database: Database) -> set[str]:
    with psycopg.connect(database.build_driver_url) as connection:
        rows = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'rag_catalog'"
        )
        return {row[0] for row in rows}


def test_the_migrations_make_the_tables_that_the_code_declares(database: Database) -> None:
    for system in installed_systems():
        for reference in system.system.tables.values():
            import_module(reference.partition(":")[0])
    with database.begin() as connection:
        options = {
            "include_schemas": True,
            "include_name": lambda name, kind, _: (
                name == SCHEMA if kind == "schema" else not str(name).startswith("alembic_version")
            ),
        }
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []


def test_systems_are_migrated_beside_the_core_and_each_other(
    database: Database, packages: Path
) -> None:
    before = tables(database)
    notes, cards = (system(packages, name, {"0001": name}) for name in ("notes", "cards"))
    assert migrate(database, Systems([notes]))
    assert tables(database) - before == {"notes", "alembic_version_notes"}
    assert migrate(database, Systems([notes, cards]))
    assert not migrate(database, Systems([notes, cards]))
    newer = system(packages, "notes", {"0001": "notes", "0002": "note_links"})
    assert migrate(database, Systems([newer, cards]))
    assert tables(database) - before == {
        *("notes", "note_links", "alembic_version_notes"),
        *("cards", "alembic_version_cards"),
    }


def test_a_system_that_is_gone_leaves_its_tables_and_breaks_nothing(
    database: Database, packages: Path
) -> None:
    notes = system(packages, "notes", {"0001": "notes"})
    migrate(database, Systems([notes]))
    assert not migrate(database, Systems([]))
    assert "notes" in tables(database)
    assert not migrate(database, Systems([notes]))


def test_a_systems_history_goes_back_without_the_cores(database: Database, packages: Path) -> None:
    before = tables(database)
    notes = system(packages, "notes", {"0001": "notes", "0002": "note_links"})
    migrate(database, Systems([notes]))
    with database.begin() as connection:
        command.downgrade(build_alembic_config(connection, notes), "0001")
    assert tables(database) - before == {"notes", "alembic_version_notes"}
    with psycopg.connect(database.build_driver_url) as connection:
        core = connection.execute("SELECT version_num FROM rag_catalog.alembic_version")
        assert core.fetchall() == [(HEAD,)]
    assert migrate(database, Systems([notes]))
    assert "note_links" in tables(database)


def test_rows_of_a_system_go_with_their_tenant(
    installation: Installation, database: Database, packages: Path
) -> None:
    migrate(database, Systems([system(packages, "notes", {"0001": "notes"})]))
    with psycopg.connect(database.build_driver_url, autocommit=True) as connection:
        connection.execute("INSERT INTO rag_catalog.notes VALUES ('acme')")
        assert installation.cli("tenants", "remove", "acme", "--yes").code == 0
        rows = connection.execute("SELECT count(*) FROM rag_catalog.notes").fetchone()
    assert rows == (0,)


@pytest.mark.parametrize(
    ("tables_", "declared", "said"),
    [
        ({"0001": "notes"}, {"head": "0002"}, "newest migration is 0001, but it declares '0002'"),
        ({"0001": "documents"}, {}, "'documents' of system 'notes'"),
        ({"0001": "provider_keys"}, {}, "'provider_keys' of system 'notes'"),
    ],
)
def test_migrations_that_are_not_usable_change_nothing(
    database: Database,
    packages: Path,
    tables_: dict[str, str],
    declared: dict[str, str],
    said: str,
) -> None:
    before = tables(database)
    with pytest.raises(ConfigurationError, match=said) as raised:
        migrate(database, Systems([system(packages, "notes", tables_, **declared)]))
    assert "notes-package 1.0" in f"{raised.value.message} {raised.value.hint}"
    assert tables(database) == before


def test_a_catalog_from_before_the_first_release_is_refused(database: Database) -> None:
    with psycopg.connect(database.build_driver_url, autocommit=True) as connection:
        connection.execute("UPDATE rag_catalog.alembic_version SET version_num = '0050'")
        before = tables(database)
        with pytest.raises(ConfigurationError, match="0050, from before the first release"):
            migrate(database)
        assert tables(database) == before
        connection.execute("UPDATE rag_catalog.alembic_version SET version_num = %s", [HEAD])


def test_a_system_can_list_tenants_under_any_key(
    installation: Installation, database: Database
) -> None:
    table = installation.session().catalog.tenants
    assert table.put("listed", {"id": "listed"}, enabled=True, origin="teams").origin == "teams"


def test_a_missing_package_of_migrations_is_named(database: Database) -> None:
    value = System(
        name="notes",
        tables={"notes": "notes:notes"},
        migrations=Migrations(package="not_there", head="0001"),
    )
    with pytest.raises(ConfigurationError, match="migrations package not_there was not found"):
        migrate(database, Systems([InstalledSystem(value, "notes-package 1.0")]))
