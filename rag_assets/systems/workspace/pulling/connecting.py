"""Opens the databases of other applications.

A URL is read only from an environment variable. Errors quote neither the URL nor a server's
messages about values.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from sqlalchemy import URL, Connection, Engine, create_engine, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DBAPIError,
    DontWrapMixin,
    NoSuchModuleError,
    SQLAlchemyError,
)
from sqlalchemy.pool import NullPool

from rag_assets.common.errors import ConfigurationError, ListingFailed
from rag_assets.common.references import resolved
from rag_assets.systems.workspace.pulling.dialects import Dialect, dialect_of, served_dialects
from rag_assets.systems.workspace.pulling.source import SqlConfig

_CONNECT_SECONDS = 10
_SCHEME = re.compile(r"^postgres(?:ql)?(?:\+\w+)?://")
_OF_THE_QUERY: Final = ("42", "0A", "22023")
"""SQL states about the text of a query, not about values."""
_NAMES_OF_MYSQL: Final = "42S"
"""MySQL states about names in a query."""
_REFUSALS: Final = (
    ("access denied", "it refuses the account or its password"),
    ("password authentication failed", "it refuses the account or its password"),
    ("no pg_hba.conf entry", "it refuses connections from here"),
    ("unknown database", "there is no such database"),
    ("does not exist", "there is no such database or account"),
    ("unknown mysql server host", "there is no such host"),
    ("name or service not known", "there is no such host"),
    ("timeout expired", "it does not answer"),
    ("refused", "nothing answers there"),
    ("could not translate host name", "there is no such host"),
    ("failed to resolve host", "there is no such host"),
    ("unable to open database file", "there is no such file"),
)


@contextmanager
def open_connection(config: SqlConfig) -> Iterator[tuple[Connection, Dialect]]:
    """Connect to a source's database, in one read-only snapshot.

    Raises:
        ConfigurationError: the variable is not set, or does not name a usable database.
        ListingFailed: the database cannot be reached.
    """
    engine, dialect = _engine(config)
    try:
        with _connected(engine, dialect, config) as connection:
            yield connection, dialect
    finally:
        engine.dispose()


def _dialect(url: URL, config: SqlConfig) -> Dialect:
    kind = url.get_backend_name()
    found = dialect_of(kind)
    if found is None:
        raise ConfigurationError(
            f"source {config.name!r}: url: {config.url} names a database of the kind {kind}, of"
            " which no records are pulled",
            hint=f"pulled from are {', '.join(served_dialects())}; have its application push them",
        )
    return found


@contextmanager
def _connected(engine: Engine, dialect: Dialect, config: SqlConfig) -> Iterator[Connection]:
    try:
        connection = engine.connect()
    except (SQLAlchemyError, OSError) as error:
        raise ListingFailed(
            f"source {config.name!r}: the database of {config.url} cannot be reached:"
            f" {_refusal(error)}",
            hint="correct the variable, or start the database; nothing was removed",
        ) from None
    with connection:
        try:
            dialect.prepare(connection, config)
        except SQLAlchemyError as error:
            raise ListingFailed(
                f"source {config.name!r}: the database of {config.url} gives no snapshot to read:"
                f" {said(error)}",
                hint="its account needs to begin a transaction that reads alone",
            ) from None
        yield connection


def _engine(config: SqlConfig) -> tuple[Engine, Dialect]:
    where = f"source {config.name!r}: url"
    given = resolved(where, config.url)
    try:
        # Errors below must not be chained: SQLAlchemy's errors quote the URL.
        url = make_url(_SCHEME.sub("postgresql+psycopg://", given))
        dialect = _dialect(url, config)
        is_postgres = url.get_backend_name() == "postgresql"
        options = _postgres_arguments(config) if is_postgres else {}
        engine = create_engine(url, poolclass=NullPool, hide_parameters=True, connect_args=options)
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"{where}: the driver of the database that {config.url} names is not installed:"
            f" {error.name}",
            hint=f"install {error.name} where rag-assets is installed, or name another driver",
        ) from None
    except NoSuchModuleError:
        raise ConfigurationError(
            f"{where}: SQLAlchemy knows no such kind of database as {config.url} names",
            hint="install its dialect, or begin the URL with one such as postgresql://",
        ) from None
    except (ArgumentError, ValueError):
        raise ConfigurationError(
            f"{where}: the variable {config.url.removeprefix('$')} holds no URL of a database",
            hint="write it as postgresql://NAME:PASSWORD@HOST:PORT/DATABASE",
        ) from None
    return engine, dialect


def _postgres_arguments(config: SqlConfig) -> dict[str, Any]:
    # A server that vanishes silently is noticed about when a statement would time out.
    return {
        "connect_timeout": _CONNECT_SECONDS,
        "keepalives_idle": 15,
        "keepalives_interval": 5,
        "keepalives_count": 4,
        "tcp_user_timeout": config.timeout_seconds * 1_000,
        "application_name": "rag-assets",
    }


def said(error: SQLAlchemyError | DontWrapMixin) -> str:
    """Return a description of an error, without values and without the URL."""
    original = getattr(error, "orig", None)
    if original is None:
        return type(error).__name__
    state = getattr(original, "sqlstate", None)
    number = next((one for one in original.args[:1] if isinstance(one, int)), None)
    code = state or number
    named = type(original).__name__ + (f" ({code})" if code else "")
    about = getattr(getattr(original, "diag", None), "message_primary", None)
    if about and state and state.startswith(_OF_THE_QUERY):
        return f"{named}: {about}"
    if state and state.startswith(_NAMES_OF_MYSQL) and number is not None:
        return f"{named}: {original.args[-1]}"
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return f"{named}: the connection broke"
    return named


def _refusal(error: Exception) -> str:
    said = str(getattr(error, "orig", None) or error).lower()
    return next((told for part, told in _REFUSALS if part in said), "it does not answer")
