"""Connections, transactions and notifications of the catalog's Postgres.

A transaction for a tenant commits only while the tenant exists, so that late writers are rejected.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final, Protocol, TypeAlias, TypeVar, TypeVarTuple, cast

import psycopg
import sqlalchemy as sa
from psycopg import Cursor
from psycopg.conninfo import conninfo_to_dict
from psycopg.errors import LockNotAvailable
from sqlalchemy.dialects.postgresql import Insert, insert
from sqlalchemy.exc import (
    ArgumentError,
    DisconnectionError,
    IntegrityError,
    InterfaceError,
    InternalError,
    OperationalError,
    ProgrammingError,
)
from sqlalchemy.pool import ConnectionPoolEntry
from sqlalchemy.sql.selectable import TypedReturnsRows
from sqlalchemy.types import TypeEngine

from rag_assets.common.disk_space import hint_to_start
from rag_assets.common.errors import ConfigurationError, ServiceUnavailable, TenantBusy, TenantGone
from rag_assets.storage.catalog import tables

_EXCLUSIVE = sa.text(
    "SELECT set_config('lock_timeout', '5s', true),"
    " set_config('plan_cache_mode', 'force_custom_plan', true)"
)
"""Wait five seconds at most for locks, and plan each statement for its own parameters.

From the sixth execution on, Postgres would use one plan for all parameters, which assumes short
arrays. With such a plan, it compared documents of 20,000 pages with each of these pages, for
minutes.
"""
_IDLE_SECONDS = 1.0
_WATCH_SECONDS = 5.0
APPLICATION: Final = "rag-assets schema "
"""The start of each connection's application_name; the revision of its schema follows."""
_RAISED = "rag_assets raised"
_SCHEME = re.compile(r"^postgres(?:ql)?(?:\+\w+)?://")


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Any]]


ModelT = TypeVar("ModelT", bound=_Dataclass)
_T = TypeVar("_T")
_Ts = TypeVarTuple("_Ts")


@dataclass(frozen=True, slots=True)
class TenantRef:
    """A tenant's id with its incarnation, which distinguishes successive uses of the id."""

    id: str
    incarnation: int


class Database:
    """Opens transactions and runs statements on the catalog's Postgres.

    Methods raise ServiceUnavailable if Postgres does not answer.

    Args:
        url: `postgresql://…`; a driver in it is replaced by psycopg 3.

    Attributes:
        after_raise: called after each transaction that increased the mark of a tenant (its number
            of changes) or the epoch of the installation. The argument contains these tenants, and
            None for the epoch. It must not raise an error.
        require_schema: called with a connection of the driver, every few seconds and before an idle
            connection is used again; raises SchemaTooNew if a newer program upgraded the catalog.

    Raises:
        ConfigurationError: the url is malformed.
    """

    after_raise: Callable[[Collection[TenantRef | None]], None] | None = None
    require_schema: Callable[[psycopg.Connection[Any]], None] | None = None

    def __init__(self, url: str) -> None:
        self.url = _SCHEME.sub("postgresql+psycopg://", url)
        self.build_driver_url = _SCHEME.sub("postgresql://", url)
        _require_usable_url(self.build_driver_url)
        self._engine: sa.Engine = sa.create_engine(
            self.url,
            pool_size=4,
            # Enough for the service's threads: readers, writers, the panel's sessions and the
            # readiness probe.
            max_overflow=13,
            # Errors must not quote the values that were to be written.
            hide_parameters=True,
            connect_args=build_connect_arguments(),
        )
        self._each_alone = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        self._snapshot_engine = self._engine.execution_options(
            isolation_level="REPEATABLE READ", postgresql_readonly=True
        )
        self._watched_at = time.monotonic()
        self._check_connections_on_use()

    def _check_connections_on_use(self) -> None:
        """Replace broken connections of the pool, and check the schema every few seconds.

        Only connections that were idle for a second are pinged. If the pool pinged before each
        transaction, pings would be a third of a sync's round trips.
        """
        engine = self._engine

        @sa.event.listens_for(engine, "checkin")
        def note(_connection: Any, record: ConnectionPoolEntry) -> None:
            record.info["used_at"] = time.monotonic()

        @sa.event.listens_for(engine, "checkout")
        def check(connection: Any, record: ConnectionPoolEntry, _fairy: Any) -> None:
            now = time.monotonic()
            is_idle = now - record.info.get("used_at", math.inf) > _IDLE_SECONDS
            is_due = now - self._watched_at > _WATCH_SECONDS
            try:
                if self.require_schema is not None and (is_idle or is_due):
                    self._watched_at = now
                    self.require_schema(connection)
                elif is_idle:
                    engine.dialect.do_ping(connection)
            except engine.dialect.loaded_dbapi.Error as error:
                raise DisconnectionError from error

    @contextmanager
    def begin(self) -> Iterator[sa.Connection]:
        """Open a transaction that is committed at the end, or rolled back after an error."""
        try:
            with self._engine.begin() as connection:
                connection.info.pop(_RAISED, None)
                yield connection
                raised = connection.info.pop(_RAISED, None)
        except (OperationalError, InterfaceError) as error:
            raise convert_error(error) from None
        except (InternalError, ProgrammingError) as error:
            if (condition := find_operator_error(error)) is not None:
                raise condition from None
            raise
        if raised and self.after_raise is not None:
            self.after_raise(raised)

    @contextmanager
    def snapshot(self) -> Iterator[sa.Connection]:
        """Open a read-only transaction in which all statements see the same state."""
        try:
            with self._snapshot_engine.begin() as connection:
                yield connection
        except (OperationalError, InterfaceError) as error:
            raise convert_error(error) from None

    @contextmanager
    def driver(self) -> Iterator[Cursor[Any]]:
        """Open a psycopg cursor, without SQLAlchemy; each statement is a separate transaction."""
        try:
            with self._each_alone.connect() as connection:
                driver_connection = connection.connection.driver_connection
                try:
                    with cast("psycopg.Connection[Any]", driver_connection).cursor() as cursor:
                        yield cursor
                except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                    connection.invalidate()
                    raise convert_error(error) from None
        except (OperationalError, InterfaceError) as error:
            raise convert_error(error) from None

    def refresh_statistics(self, *tables: sa.Table) -> None:
        """Run ANALYZE on these tables, after many rows were written.

        Autovacuum does the same within minutes. Until then, Postgres assumes a single row for a
        new tenant, and joins two tables by comparing every pair of rows. If another process
        already analyzes a table, this does not wait for it.
        """
        names = ", ".join(table.fullname for table in tables)
        with self.begin() as connection:
            connection.execute(sa.text(f"ANALYZE (SKIP_LOCKED) {names}"))

    @contextmanager
    def begin_tenant(self, ref: TenantRef) -> Iterator[sa.Connection]:
        """Open a transaction that commits only while this incarnation of the tenant exists.

        Raises:
            TenantGone: the tenant was removed, or removed and created again.
        """
        with self._begin_transaction(ref, exclusive=False) as connection:
            yield connection

    @contextmanager
    def begin_exclusive(self, ref: TenantRef) -> Iterator[sa.Connection]:
        """Open a transaction like begin_tenant that excludes all others for this tenant.

        Use it for changes to rows that a running sync may also change, and keep it short.

        Raises:
            TenantBusy: other transactions did not end within five seconds.
        """
        with self._begin_transaction(ref, exclusive=True) as connection:
            yield connection

    @contextmanager
    def _begin_transaction(self, ref: TenantRef, *, exclusive: bool) -> Iterator[sa.Connection]:
        alive = sa.select(tables.tenants.c.id).where(
            tables.tenants.c.id == ref.id,
            tables.tenants.c.incarnation == ref.incarnation,
            tables.tenants.c.state != "REMOVING",
        )
        # Inserting rows that refer to the tenant takes FOR KEY SHARE; neither lock mode blocks
        # that.
        locked = alive.with_for_update(read=not exclusive, key_share=exclusive)
        with self.begin() as connection:
            if exclusive:
                connection.execute(_EXCLUSIVE)
            if connection.scalar(locked) is None:
                raise TenantGone(
                    f"tenant {ref.id!r} was removed during this run",
                    hint="nothing of this run was kept; add the tenant again to index it",
                )
            yield connection

    def fetch_rows(
        self, query: TypedReturnsRows[*_Ts], parameters: Any = None
    ) -> Sequence[sa.Row[*_Ts]]:
        """Run a query in a separate transaction; return the rows."""
        with self.begin() as connection:
            return connection.execute(query, parameters).all()

    def fetch_row(self, query: TypedReturnsRows[*_Ts]) -> sa.Row[*_Ts] | None:
        """Return the first row of a query; None without rows."""
        with self.begin() as connection:
            return connection.execute(query).first()

    def fetch_one(self, query: TypedReturnsRows[*_Ts]) -> sa.Row[*_Ts]:
        """Return the only row of a query; fail if it has none or several."""
        with self.begin() as connection:
            return connection.execute(query).one()

    def fetch_value(self, query: TypedReturnsRows[_T]) -> _T | None:
        """Return the first column of a query's first row; None without rows."""
        with self.begin() as connection:
            return connection.scalar(query)

    def fetch_values(self, query: TypedReturnsRows[_T]) -> Sequence[_T]:
        """Return the first column of all rows of a query."""
        with self.begin() as connection:
            return connection.scalars(query).all()

    def count(self, tenant_id: str, table: sa.Table, *conditions: sa.ColumnElement[bool]) -> int:
        """Return the number of a tenant's rows in a table that meet the conditions."""
        query = sa.select(sa.func.count()).select_from(table)
        return self.fetch_value(query.where(table.c.tenant == tenant_id, *conditions)) or 0

    def write(self, ref: TenantRef, statement: sa.Executable, parameters: Any = None) -> int:
        """Execute a statement in a separate transaction for a tenant; return the number of rows."""
        with self.begin_tenant(ref) as connection:
            return connection.execute(statement, parameters).rowcount

    def update(
        self, ref: TenantRef, table: sa.Table, *conditions: sa.ColumnElement[bool], **values: Any
    ) -> int:
        """Change rows of a tenant in a separate transaction; return the number of rows."""
        is_row = (table.c.tenant == ref.id, *conditions)
        return self.write(ref, sa.update(table).where(*is_row).values(values))

    def delete(self, ref: TenantRef, table: sa.Table, *conditions: sa.ColumnElement[bool]) -> int:
        """Delete rows of a tenant in a separate transaction; return the number of rows."""
        return self.write(ref, sa.delete(table).where(table.c.tenant == ref.id, *conditions))

    def time(self) -> datetime:
        """Return the current time of Postgres."""
        with self.begin() as connection:
            now: datetime = connection.execute(sa.select(sa.func.clock_timestamp())).scalar_one()
        return now

    @contextmanager
    def session(self) -> Iterator[sa.Connection]:
        """Open a separate connection outside the pool, for session-level locks."""
        try:
            connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        except (OperationalError, InterfaceError) as error:
            raise convert_error(error) from None
        connection.detach()
        try:
            yield connection
        finally:
            connection.close()

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()


class CatalogQueries:
    """Base class of the classes that read and write tables of the catalog.

    Methods raise ServiceUnavailable if Postgres does not answer. Those that change data of a tenant
    raise TenantGone if the tenant was removed. The argument `by` is the caller's name, for events.
    """

    def __init__(self, database: Database) -> None:
        self._database = database


def read_row(kind: type[ModelT], row: Any, **values: Any) -> ModelT:
    """Build a dataclass from a row: each field takes the column of the same name."""
    names = (name for name in kind.__dataclass_fields__ if name not in values)
    return kind(**{name: getattr(row, name) for name in names}, **values)


def note_raised(connection: sa.Connection, ref: TenantRef | None) -> None:
    """Note, for `after_raise`, that a transaction increases a tenant's mark; None: the epoch."""
    connection.info.setdefault(_RAISED, set()).add(ref)


def _require_usable_url(url: str) -> None:
    try:
        sa.make_url(url)
        ports = str(conninfo_to_dict(url).get("port", "")).split(",")
        # If a password contains a /, the text after it is parsed as the database's name, and the
        # text before it as the port.
        is_usable = all(port.isdecimal() or not port for port in ports)
    except (ArgumentError, ValueError, psycopg.ProgrammingError):
        is_usable = False
    if not is_usable:
        raise ConfigurationError(  # not quoted: it may hold a password
            "RAG_ASSETS_DATABASE_URL is malformed: its port, or a parameter after the ?, is not"
            " valid",
            hint="use the form postgresql://NAME:PASSWORD@HOST:5432/DATABASE?sslmode=require;"
            " characters such as / and @ in a password are written as %2F and %40",
        )


def build_connect_arguments() -> dict[str, Any]:
    """Return the arguments of every connection to Postgres."""
    from rag_assets.storage.catalog.migrate import HEAD

    return {"connect_timeout": 10, "application_name": f"{APPLICATION}{HEAD}"}


Texts: TypeAlias = Iterable[str] | sa.BindParameter[list[str]]
"""Texts, or the parameter of a prepared statement that passes them."""


def build_texts_parameter(name: str) -> sa.BindParameter[list[str]]:
    """Return a parameter of a prepared statement that takes a list of texts of any length."""
    kind: TypeEngine[list[str]] = sa.ARRAY(sa.Text)  # type: ignore[assignment]
    return sa.bindparam(name, type_=kind)


def find_constraint(error: IntegrityError) -> str | None:
    """Return the name of the constraint or unique index that a statement violated."""
    original = error.orig
    return original.diag.constraint_name if isinstance(original, psycopg.Error) else None


def matches_any(column: sa.ColumnElement[str], values: Texts) -> sa.ColumnElement[bool]:
    """Return the SQL condition that a column has one of these values, passed as one parameter."""
    array = (
        values
        if isinstance(values, sa.BindParameter)
        else sa.literal(list(values), sa.ARRAY(sa.Text))
    )
    return column == sa.any_(array)


def matches_document(first: Any, second: Any) -> sa.ColumnElement[bool]:
    """Return the SQL condition that rows of two tables belong to the same document."""
    return sa.and_(first.tenant == second.tenant, first.document_id == second.document_id)


def is_of_documents(columns: Any, tenant_id: str, document_ids: Texts) -> sa.ColumnElement[bool]:
    """Return the SQL condition for a tenant's rows that belong to one of these documents."""
    return sa.and_(columns.tenant == tenant_id, matches_any(columns.document_id, document_ids))


def build_row_upsert(table: sa.Table, key: Mapping[str, Any], values: Mapping[str, Any]) -> Insert:
    """Return the statement that inserts a row, or changes the values of the row with this key."""
    new = insert(table).values(**key, **values)
    return new.on_conflict_do_update(index_elements=list(key), set_=dict(values))


def unnest_pairs(pairs: Collection[tuple[str, str]], *, name: str) -> sa.FromClause:
    """Return pairs as a table with columns `key` and `value`."""
    keys, values = ([pair[at] for pair in pairs] for at in (0, 1))
    return (
        sa.func.unnest(sa.literal(keys, sa.ARRAY(sa.Text)), sa.literal(values, sa.ARRAY(sa.Text)))
        .table_valued("key", "value", name=name)
        .render_derived()
    )


_CONDITIONS: Final[Mapping[str, tuple[str, str]]] = {
    "25006": (
        "Postgres is read-only: a standby, or default_transaction_read_only is on",
        "set RAG_ASSETS_DATABASE_URL to the primary server",
    ),
    "28000": ("Postgres refuses the account", "check the account in RAG_ASSETS_DATABASE_URL"),
    "28P01": (
        "Postgres refuses the account or its password",
        "check those in RAG_ASSETS_DATABASE_URL",
    ),
    "3D000": (
        "Postgres has no database of that name",
        "create it, or correct RAG_ASSETS_DATABASE_URL",
    ),
    "42501": (
        "the Postgres role lacks privileges that the catalog needs",
        (
            "make the role the owner of its database, or set RAG_ASSETS_OWNER_DATABASE_URL to the"
            " owner's account"
        ),
    ),
    "53100": ("the disk of Postgres is full", "free or add disk space there, then try again"),
    "53300": (
        "Postgres has no connection left",
        "raise its max_connections, or end programs that hold many connections",
    ),
    "57P03": ("Postgres is starting, stopping or recovering", "try again in a moment"),
}
"""Message and hint for each condition, by SQLSTATE."""


def find_operator_error(error: Exception) -> ServiceUnavailable | None:
    """Return the error for a state of Postgres that an operator must resolve; None for others."""
    state = getattr(getattr(error, "orig", error), "sqlstate", None)
    known = _CONDITIONS.get(str(state))
    return None if known is None else ServiceUnavailable(known[0], hint=known[1])


def convert_error(error: Exception) -> ServiceUnavailable:
    """Return the project's error for a driver's connection error, with passwords masked."""
    if isinstance(getattr(error, "orig", None), LockNotAvailable):
        return TenantBusy(
            "other processes are writing to this tenant", hint="try again in a few seconds"
        )
    if (condition := find_operator_error(error)) is not None:
        return condition
    first = str(getattr(error, "orig", error)).strip().splitlines()
    reason = re.sub(r"://[^@\s]*@", "://***@", first[0]) if first else type(error).__name__
    return ServiceUnavailable(
        f"Postgres does not answer: {reason}", hint=hint_to_start("RAG_ASSETS_DATABASE_URL")
    )


def write_event(connection: sa.Connection, tenant_id: str, kind: str, payload: Any) -> None:
    """Append an event of a tenant in an open transaction."""
    row = {"tenant": tenant_id, "kind": kind, "payload": payload}
    connection.execute(insert(tables.events).values(row))


TENANTS = ""
"""Sent instead of a tenant's id: tenants were added, or their configuration changed."""
_CHANNEL = "rag_assets_changes"


def notify(connection: sa.Connection, tenant_id: str) -> None:
    """Tell listeners, when the transaction commits, that a tenant has something to sync."""
    connection.execute(sa.select(sa.func.pg_notify(_CHANNEL, tenant_id)))


class ChangeChannel:
    """Sends notifications of tenants with something to sync, and receives them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def notify(self, tenant_ids: Iterable[str]) -> None:
        """Notify listeners that tenants have something to sync."""
        ids = list(tenant_ids)
        if ids:
            with self._database.begin() as connection:
                for tenant_id in ids:
                    notify(connection, tenant_id)

    def notifications(self, timeout: float) -> Iterator[str | None]:
        """Yield the tenant of each notification, or TENANTS.

        None is yielded at the start, and whenever `timeout` seconds passed without a notification.

        Raises:
            ServiceUnavailable: Postgres does not answer, or the connection broke.
        """
        url = self._database.build_driver_url
        try:
            with psycopg.connect(url, autocommit=True, **build_connect_arguments()) as connection:
                connection.execute(f"LISTEN {_CHANNEL}")
                yield None
                while True:
                    received = list(connection.notifies(timeout=timeout, stop_after=1))
                    yield from (notification.payload for notification in received)
                    if not received:
                        yield None
        except psycopg.OperationalError as error:
            raise ServiceUnavailable(
                f"listening to Postgres failed ({type(error).__name__})",
                hint="rag-assets tries again; meanwhile, the sensor source_files finds changes",
            ) from None
