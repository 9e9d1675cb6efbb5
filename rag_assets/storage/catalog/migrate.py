"""Bringing a database to the newest schema, at the price of one query when it already is."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import column, select, table, text
from sqlalchemy.exc import ProgrammingError

from rag_assets.storage.catalog.columns import SCHEMA
from rag_assets.storage.catalog.database import Database

HEAD = "0011"
_MIGRATIONS = Path(__file__).parent / "migrations"
_ALEMBIC = table("alembic_version", column("version_num"), schema=SCHEMA)
_MIGRATION_LOCK = 0x7261675F61737365


def migrate(database: Database) -> bool:
    """Create or upgrade the catalog's tables.

    Safe to call from many processes at once; the first one does the work.

    Returns:
        Whether anything had to be done.
    """
    if _version(database) == HEAD:
        return False
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS))
    with database.begin() as connection:
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _MIGRATION_LOCK})
        connection.execute(text(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}"))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
    return True


def _version(database: Database) -> str | None:
    try:
        with database.begin() as connection:
            version: str | None = connection.scalar(select(_ALEMBIC.c.version_num))
            return version
    except ProgrammingError:
        return None
