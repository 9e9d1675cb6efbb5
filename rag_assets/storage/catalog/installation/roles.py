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

_ROLES: Final = """
DO $roles$
DECLARE
  prefix text := current_database() || '_';
  owner text := prefix || 'owner';
  writer text := prefix || 'writer';
  service text := prefix || 'service';
  dagster text := prefix || 'dagster';
  name text;
  item record;
BEGIN
  FOREACH name IN ARRAY ARRAY[owner, writer, service, dagster] LOOP
    IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name) THEN
      EXECUTE format('CREATE ROLE %I LOGIN', name);
    END IF;
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), name);
  END LOOP;
  EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
  EXECUTE format('GRANT CREATE ON DATABASE %I TO %I, %I', current_database(), owner, writer);
  EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO %I, %I', current_database(), writer, service);
  REVOKE CREATE ON SCHEMA public FROM PUBLIC;
  -- Erasures remove names of documents from run records.
  EXECUTE format('GRANT %I TO %I', dagster, writer);
  IF current_setting('server_version_num')::int < 170000 THEN
    -- Until version 17, only the owner of a table may vacuum it.
    EXECUTE format('GRANT %I TO %I', owner, writer);
  END IF;
  -- Only a superuser may create it.
  IF EXISTS (SELECT FROM pg_available_extensions e WHERE e.name = 'vector') THEN
    CREATE EXTENSION IF NOT EXISTS vector;
  END IF;

  EXECUTE format('CREATE SCHEMA IF NOT EXISTS rag_catalog AUTHORIZATION %I', owner);
  EXECUTE format('CREATE SCHEMA IF NOT EXISTS rag_dagster AUTHORIZATION %I', dagster);
  FOR item IN
    SELECT nspname, CASE nspname WHEN 'rag_catalog' THEN owner WHEN 'rag_dagster' THEN dagster
      ELSE writer END AS new_owner
    FROM pg_namespace WHERE nspname IN ('rag_catalog', 'rag_dagster') OR nspname ~ '_vectors_'
  LOOP
    EXECUTE format('ALTER SCHEMA %I OWNER TO %I', item.nspname, item.new_owner);
    IF item.new_owner = writer THEN
      EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', item.nspname, service);
      EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA %I TO %I', item.nspname, service);
    END IF;
  END LOOP;
  FOREACH name IN ARRAY ARRAY['USAGE ON SCHEMAS', 'SELECT ON TABLES'] LOOP
    EXECUTE format('ALTER DEFAULT PRIVILEGES FOR ROLE %I GRANT %s TO %I', writer, name, service);
  END LOOP;

  FOR item IN
    SELECT nspname, relname, CASE relkind WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END AS kind,
      CASE nspname WHEN 'rag_catalog' THEN owner WHEN 'rag_dagster' THEN dagster
        ELSE writer END AS new_owner
    FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
    WHERE relkind IN ('r', 'p', 'S')
      -- The sequence of a column belongs to whoever the table belongs to.
      AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype IN ('a', 'i'))
      AND (nspname IN ('rag_catalog', 'rag_dagster') OR nspname ~ '_vectors_')
  LOOP
    EXECUTE format(
      'ALTER %s %I.%I OWNER TO %I', item.kind, item.nspname, item.relname, item.new_owner);
  END LOOP;
  FOR item IN
    SELECT p.oid::regprocedure AS what FROM pg_proc p JOIN pg_namespace n ON n.oid = pronamespace
    WHERE nspname = 'rag_catalog'
  LOOP
    EXECUTE format('ALTER ROUTINE %s OWNER TO %I', item.what, owner);
  END LOOP;
END
$roles$;
"""
_GRANTS: Final = """
DO $grants$
DECLARE
  writer text := current_database() || '_writer';
  service text := current_database() || '_service';
  right_ text;
  item record;
BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = service) THEN
    RETURN;
  END IF;
  EXECUTE format('GRANT USAGE ON SCHEMA rag_catalog TO %I, %I', writer, service);
  FOREACH right_ IN ARRAY ARRAY['USAGE, SELECT ON ALL SEQUENCES', 'SELECT ON ALL TABLES'] LOOP
    EXECUTE format('GRANT %s IN SCHEMA rag_catalog TO %I, %I', right_, writer, service);
  END LOOP;
  FOR item IN
    SELECT format('rag_catalog.%I', relname) AS name, relname LIKE 'alembic_version%' AS is_version,
      coalesce('SERVICE_RIGHTS'::jsonb ->> relname::text, 'INSERT, UPDATE, DELETE') AS rights
    FROM pg_class WHERE relnamespace = 'rag_catalog'::regnamespace AND relkind IN ('r', 'p')
  LOOP
    IF current_setting('server_version_num')::int >= 170000 THEN
      EXECUTE format('GRANT MAINTAIN ON %s TO %I', item.name, writer);
    END IF;
    -- Rights that a former version granted, too.
    EXECUTE format('REVOKE INSERT, UPDATE, DELETE ON %s FROM %I', item.name, service);
    CONTINUE WHEN item.is_version;
    EXECUTE format('GRANT INSERT, UPDATE, DELETE ON %s TO %I', item.name, writer);
    IF item.rights <> '' THEN
      EXECUTE format('GRANT %s ON %s TO %I', item.rights, item.name, service);
    END IF;
  END LOOP;
END
$grants$;
"""

_HEAD: Final = """\
-- Makes the roles of the database in which it runs, whose names begin with the database's: _owner,
-- _writer, _service and _dagster. It may run again at any time. Run it as a superuser.
"""


def roles_sql() -> str:
    """Return SQL that creates the roles, transfers existing objects to them, and grants rights."""
    return _HEAD + _ROLES + grants_sql()


def grants_sql() -> str:
    """Return SQL that grants the roles their rights after an upgrade; no effect without roles."""
    return _GRANTS.replace("SERVICE_RIGHTS", json.dumps(service_rights()))


def service_rights() -> dict[str, str]:
    """Return the service's rights, by table, in the tables where they are restricted.

    The tables of systems are included.
    """
    of_systems = (system.system.service_rights for system in installed_systems())
    return {
        **_SERVICE_RIGHTS,
        **{table: of for of_system in of_systems for table, of in of_system.items()},
    }


def create_roles(url: str, passwords: Mapping[Role, str]) -> None:
    """Create the roles of a database, or bring them up to date.

    Args:
        url: the database's address, for a superuser.
    """
    import psycopg
    from psycopg import sql

    with psycopg.connect(url) as connection:
        connection.execute(roles_sql().encode())
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
