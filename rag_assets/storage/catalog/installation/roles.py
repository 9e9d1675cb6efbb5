"""Roles of Postgres, so that no process has more rights in the database than it needs.

The name of a role starts with its database's name, as in `rag_assets_service`:

| role | used by | may | |---|---|---| | owner | upgrades of the schema | everything in
`rag_catalog` | | writer | commands, runs, the change watcher | change rows; make schemas of vectors
| | service | `rag-assets serve` with the panel | read; change the rows that requests change | |
dagster | Dagster's storage | own its tables in `rag_dagster`; nothing of the catalog |

No role is a superuser. The embedded server creates the roles; `rag-assets roles` prints the same
SQL for another server. On a server without these roles, one account does everything.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Final, Literal, TypeAlias, get_args

from rag_assets.plugins.registry import installed_systems

Role: TypeAlias = Literal["owner", "writer", "service", "dagster"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)

_SERVICE_RIGHTS: Final[Mapping[str, str]] = {
    # Written by runs.
    **dict.fromkeys(("check_results", "dagster_histories"), ""),
    **dict.fromkeys(("embedder_probes", "embedding_batches", "moved_documents"), ""),
    # A request to index a removed document again triggers a listing of its source.
    "syncs": "UPDATE (listing_digest)",
    **dict.fromkeys(("serving", "tenant_locks"), ""),
    # The cost of a question counts for the tenant's run and build.
    "slices": "UPDATE (spent)",
    "generations": "UPDATE",
    # Written by commands.
    **dict.fromkeys(("holds", "judged_questions", "question_vectors"), ""),
    "service_tokens": "UPDATE (last_used_at)",
    # Proof of erasures, which outlives the erased data.
    "receipts": "",
    # Opening the installation from another folder or machine is recorded.
    "installation": "UPDATE",
    "installation_homes": "INSERT, UPDATE",
    "installation_places": "INSERT, UPDATE",
}
"""The service's rights in those tables of the catalog in which its rights are restricted.

In all other tables, requests may add, change and delete rows.
"""


def build_roles_sql() -> str:
    """Return SQL that creates the roles, transfers existing objects to them, and grants rights."""
    return f"{_read_sql('roles.sql')}\n{build_grants_sql()}"


def build_grants_sql() -> str:
    """Return SQL that grants the roles their rights after an upgrade; no effect without roles."""
    return _read_sql("grants.sql").replace("SERVICE_RIGHTS", json.dumps(service_rights()))


def _read_sql(name: str) -> str:
    return files("rag_assets.storage.catalog.installation").joinpath(name).read_text("utf-8")


def service_rights() -> dict[str, str]:
    """Return the service's rights, by table, in the tables where they are restricted."""
    of_systems = (system.system.service_rights for system in installed_systems())
    return {
        **_SERVICE_RIGHTS,
        **{table: rights for of_system in of_systems for table, rights in of_system.items()},
    }


def create_roles(url: str, passwords: Mapping[Role, str]) -> None:
    """Create the roles of a database, or bring them up to date."""
    import psycopg
    from psycopg import sql

    with psycopg.connect(url) as connection:
        connection.execute(build_roles_sql().encode())
        database = connection.info.dbname
        for role, password in passwords.items():
            name, secret = sql.Identifier(f"{database}_{role}"), sql.Literal(password)
            connection.execute(sql.SQL("ALTER ROLE {} PASSWORD {}").format(name, secret))


def is_superuser(url: str) -> bool:
    """Return whether an account is a superuser of its server.

    Raises:
        psycopg.Error: the server does not answer.
    """
    import psycopg

    query = "SELECT rolsuper FROM pg_roles WHERE rolname = current_user"
    with psycopg.connect(url, connect_timeout=2) as connection:
        row = connection.execute(query).fetchone()
    return row is not None and bool(row[0])
