"""One Postgres: connections, transactions, and the fence that keeps late writers out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from psycopg.errors import LockNotAvailable
from sqlalchemy import (
    ARRAY,
    BindParameter,
    ColumnElement,
    Connection,
    Engine,
    Text,
    any_,
    bindparam,
    create_engine,
    literal,
    select,
    text,
)
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.types import TypeEngine

from rag_assets.common.errors import ServiceUnavailable, TenantBusy, TenantGone
from rag_assets.storage.catalog import tables

_WAIT_SHORTLY = text("SET LOCAL lock_timeout = '5s'")
_SCHEME = re.compile(r"^postgres(?:ql)?(?:\+\w+)?://")


@dataclass(frozen=True, slots=True)
class TenantRef:
    """A tenant as one writer knows it: the id, and which use of that id it is."""

    id: str
    incarnation: int


class Database:
    """Transactions on the catalog's Postgres.

    Args:
        url: `postgresql://…`; the driver is ours to choose (psycopg 3).
    """

    def __init__(self, url: str) -> None:
        self.url = _SCHEME.sub("postgresql+psycopg://", url)
        self.driver_url = _SCHEME.sub("postgresql://", url)
        self._engine: Engine = create_engine(
            self.url,
            pool_size=4,
            # Threads of the service: that read, that write, and that see whether it is ready.
            max_overflow=11,
            pool_pre_ping=True,
            # What was to be written is no business of an error's reader.
            hide_parameters=True,
            connect_args=connect_arguments(),
        )

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """A transaction, committed at the end.

        Raises:
            ServiceUnavailable: Postgres does not answer.
        """
        try:
            with self._engine.begin() as connection:
                yield connection
        except (OperationalError, InterfaceError) as error:
            raise unavailable(error) from None

    @contextmanager
    def begin_for(self, ref: TenantRef) -> Iterator[Connection]:
        """A transaction that only commits while this use of the tenant's id is alive.

        Raises:
            TenantGone: the tenant was removed, or removed and made again.
        """
        with self._begin_for(ref, alone=False) as connection:
            yield connection

    @contextmanager
    def begin_exclusive(self, ref: TenantRef) -> Iterator[Connection]:
        """The same, and while it lasts no other transaction for this tenant does.

        For requests that change what a sync under way may be writing too: keep it short.

        Raises:
            TenantGone: see begin_for.
            TenantBusy: others did not end within five seconds.
        """
        with self._begin_for(ref, alone=True) as connection:
            yield connection

    @contextmanager
    def _begin_for(self, ref: TenantRef, *, alone: bool) -> Iterator[Connection]:
        alive = select(tables.tenants.c.id).where(
            tables.tenants.c.id == ref.id,
            tables.tenants.c.incarnation == ref.incarnation,
            tables.tenants.c.state != "REMOVING",
        )
        # Rows that refer to the tenant lock its key alone, and go on being written.
        locked = alive.with_for_update(read=not alone, key_share=alone)
        with self.begin() as connection:
            if alone:
                connection.execute(_WAIT_SHORTLY)
            if connection.scalar(locked) is None:
                raise TenantGone(
                    f"tenant {ref.id!r} was removed while this was at work",
                    hint="nothing of this run was kept; add the tenant again to index it",
                )
            yield connection

    @contextmanager
    def session(self) -> Iterator[Connection]:
        """A connection of its own, outside the pool, for what lives as long as a session."""
        try:
            connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        except (OperationalError, InterfaceError) as error:
            raise unavailable(error) from None
        connection.detach()
        try:
            yield connection
        finally:
            connection.close()

    def close(self) -> None:
        """Give all connections back."""
        self._engine.dispose()


def connect_arguments() -> dict[str, Any]:
    """How every connection to Postgres is opened."""
    return {"connect_timeout": 10, "application_name": "rag-assets"}


Texts: TypeAlias = Iterable[str] | BindParameter[list[str]]
"""Some texts, or the parameter of a prepared statement that they are given in."""


def texts_given_as(name: str) -> BindParameter[list[str]]:
    """A parameter of a prepared statement that takes any number of texts."""
    kind: TypeEngine[list[str]] = ARRAY(Text)  # type: ignore[assignment]
    return bindparam(name, type_=kind)


def among(column: ColumnElement[str], values: Texts) -> ColumnElement[bool]:
    """Whether a column's value is one of these, however many they are: one parameter for all."""
    given = values if isinstance(values, BindParameter) else literal(list(values), ARRAY(Text))
    return column == any_(given)


def unavailable(error: Exception) -> ServiceUnavailable:
    """The project's error for a driver's connection error; drops what could hold a password."""
    if isinstance(getattr(error, "orig", None), LockNotAvailable):
        return TenantBusy("others write for this tenant", hint="ask again in some seconds")
    first = str(getattr(error, "orig", error)).strip().splitlines()
    reason = re.sub(r"://[^@\s]*@", "://***@", first[0]) if first else type(error).__name__
    return ServiceUnavailable(
        f"Postgres does not answer: {reason}",
        hint="start it with `rag-assets up`, or check DATABASE_URL",
    )
