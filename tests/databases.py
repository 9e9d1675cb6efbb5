"""Databases for tests, copied from a template that has the tables of the catalog and of Dagster.

Creating the tables takes half a second of CPU; a copy takes a tenth of a second.
"""

from __future__ import annotations

import os
import tempfile
import uuid
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql

from rag_assets.cli.session import Session
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import Database
from rag_assets.storage.catalog.installation.roles import ROLES, Role, create_roles


def create_database(postgres_url: str, name: str) -> str:
    """Create a database with all tables, which are empty; return its URL."""
    execute(postgres_url, "CREATE DATABASE {} TEMPLATE {}", name, _template(postgres_url))
    return get_url(postgres_url, name)


def create_empty_database(postgres_url: str, name: str) -> str:
    """Create a database without tables; return its URL."""
    execute(postgres_url, "CREATE DATABASE {}", name)
    return get_url(postgres_url, name)


def recreate_database(url: str) -> None:
    """Replace a database with an empty one, even if it has connections."""
    name, server = name_of(url), get_url(url, "postgres")
    drop_database(server, name)
    execute(server, "CREATE DATABASE {}", name)


def drop_database(postgres_url: str, name: str) -> None:
    """Drop a database and its roles, even if it has connections."""
    execute(postgres_url, "DROP DATABASE {} WITH (FORCE)", name)
    for role in ROLES:
        execute(postgres_url, "DROP ROLE IF EXISTS {}", f"{name}_{role}")


def roles_of(url: str) -> Mapping[Role, str]:
    """Create the roles of a database; return a URL for each.

    Open connections stay valid, because the passwords are always the same.
    """
    passwords: dict[Role, str] = {role: f"example-{role}" for role in ROLES}
    create_roles(url, passwords)
    parts = urlsplit(url)
    return {
        role: urlunsplit(
            parts._replace(netloc=f"{name_of(url)}_{role}:{password}@{parts.hostname}:{parts.port}")
        )
        for role, password in passwords.items()
    }


def as_service(session: Session) -> Catalog:
    """Return the catalog of a session with the rights that `rag-assets serve` has."""
    own = session.catalog.database
    catalog = Catalog(Database(roles_of(own.build_driver_url)["service"]))
    catalog.database.after_raise = own.after_raise
    session._exit_stack.callback(catalog.close)
    return catalog


def drop_template(postgres_url: str) -> None:
    """Drop the template of `create_database`, if this process created it."""
    if _template.cache_info().currsize:
        drop_database(postgres_url, _template(postgres_url))


def get_url(postgres_url: str, name: str) -> str:
    """Return the URL of another database of a server."""
    return urlunsplit(urlsplit(postgres_url)._replace(path=f"/{name}"))


def name_of(url: str) -> str:
    """Return the name of the database in a URL."""
    return urlsplit(url).path.removeprefix("/")


@cache
def _template(postgres_url: str) -> str:
    name = f"template_{uuid.uuid4().hex[:12]}"
    execute(postgres_url, "CREATE DATABASE {}", name)
    before = dict(os.environ)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as environment:
        environment.setenv("RAG_ASSETS_HOME", folder)
        environment.setenv("RAG_ASSETS_DATABASE_URL", get_url(postgres_url, name))
        environment.setenv(
            "RAG_ASSETS_ELASTICSEARCH_URL", "http://127.0.0.1:9"
        )  # a template must have no connections
        environment.setenv("RAG_ASSETS_MASTER_KEY_FILE", str(Path(folder) / "master.key"))
        with Session() as session:
            assert session.unverified_catalog is not None  # a copy is an installation of its own
            assert session.instance is not None
    os.environ.clear()
    os.environ.update(before)
    return name


def execute(postgres_url: str, statement: str, *names: str) -> None:
    """Execute a statement outside of a transaction, with quoted names."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
