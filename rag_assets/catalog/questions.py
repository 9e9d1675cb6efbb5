"""What a search asks of the catalog: in two statements, and without blocking an event loop."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Integer, Result, Row, Select, Text, bindparam, cast, func, select
from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import create_async_engine

from rag_assets.catalog.access import PUBLIC
from rag_assets.catalog.database import (
    Database,
    TenantRef,
    among,
    connect_arguments,
    texts_given_as,
    unavailable,
)
from rag_assets.catalog.generations import Generation, generation_of
from rag_assets.catalog.index_rows import (
    ReadableVersion,
    readable_by_document,
    readable_versions,
)
from rag_assets.catalog.tables import access_scopes, generations, serving
from rag_assets.catalog.tables import tenants as tenants_table
from rag_assets.catalog.tenants import State, unknown_tenant
from rag_assets.errors import ServiceUnavailable

_CONNECTIONS = 8
_WAIT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Standing:
    """How a tenant stands at one moment towards somebody who asks.

    Attributes:
        config: its configuration as JSON: equal text is equal configuration.
        serving: the generation that answers; None before the first is complete.
        scopes: all that whoever asks may read, the public one among them.
    """

    ref: TenantRef
    state: State
    config: str
    serving: Generation | None
    scopes: frozenset[str]


class QuestionReader:
    """Reads what searches need, in one event loop; connections are kept.

    Every statement sees what was committed when it began: a grant or a revocation, a publication,
    a deletion holds with the next one.

    Args:
        database: where the catalog is.
    """

    def __init__(self, database: Database) -> None:
        # Not pinged before each use: a connection that died meanwhile is replaced when it fails.
        self._engine = create_async_engine(
            database.url,
            isolation_level="AUTOCOMMIT",
            pool_size=_CONNECTIONS,
            max_overflow=0,
            pool_timeout=_WAIT_SECONDS,
            pool_reset_on_return=None,
            hide_parameters=True,
            connect_args=connect_arguments(),
        )
        self._standing = _standing_statement()
        self._readable = _readable_statement()

    async def standing(self, tenant_id: str, principals: Collection[str]) -> Standing:
        """A tenant, the generation that answers, and what may be read, all of one moment.

        Raises:
            UnknownTenant: there is none of that id.
            ServiceUnavailable: Postgres does not answer.
        """
        rows = await self._rows(self._standing, {"tenant": tenant_id, "principals": [*principals]})
        if not rows:
            raise unknown_tenant(tenant_id)
        row = rows[0]
        return Standing(
            TenantRef(tenant_id, row.incarnation),
            row.tenant_state,
            row.config,
            None if row.generation is None else generation_of(row),
            frozenset({PUBLIC, *(row.scopes or ())}),
        )

    async def readable(
        self,
        tenant_id: str,
        generation: int,
        document_ids: Sequence[str],
        principals: Collection[str],
    ) -> dict[str, ReadableVersion]:
        """The version of each named document that one of these principals may be shown.

        Raises:
            ServiceUnavailable: Postgres does not answer.
        """
        rows = await self._rows(
            self._readable,
            {
                "tenant": tenant_id,
                "generation": generation,
                "documents": [*document_ids],
                "principals": [*principals],
            },
        )
        return readable_by_document(rows)

    async def close(self) -> None:
        """Give the connections back, in the loop that asked."""
        await self._engine.dispose()

    async def _rows(
        self, statement: Select[Any], parameters: Mapping[str, object]
    ) -> Sequence[Row[Any]]:
        try:
            return await self._ask(statement, parameters)
        except OperationalError as error:
            if not error.connection_invalidated:
                raise unavailable(error) from None
        except InterfaceError as error:
            raise unavailable(error) from None
        # Postgres was started anew since the connection was used: another one may work.
        try:
            return await self._ask(statement, parameters)
        except (OperationalError, InterfaceError) as error:
            raise unavailable(error) from None

    async def _ask(
        self, statement: Select[Any], parameters: Mapping[str, object]
    ) -> Sequence[Row[Any]]:
        try:
            async with self._engine.connect() as connection:
                found: Result[Any] = await connection.execute(statement, parameters)
                return found.all()
        except PoolTimeoutError:
            raise ServiceUnavailable(
                "too many searches wait for Postgres", hint="ask again in a moment"
            ) from None


def _standing_statement() -> Select[Any]:
    tenant = tenants_table.c
    scopes = (
        select(func.array_agg(access_scopes.c.scope.distinct()))
        .where(
            access_scopes.c.tenant == tenant.id,
            among(access_scopes.c.principal, texts_given_as("principals")),
        )
        .scalar_subquery()
    )
    return (
        select(
            tenant.incarnation,
            tenant.state.label("tenant_state"),
            cast(tenant.config, Text).label("config"),
            generations,
            scopes.label("scopes"),
        )
        .select_from(tenants_table)
        .outerjoin(serving, serving.c.tenant == tenant.id)
        .outerjoin(
            generations,
            (generations.c.tenant == serving.c.tenant)
            & (generations.c.generation == serving.c.generation),
        )
        .where(tenant.id == bindparam("tenant", type_=Text))
    )


def _readable_statement() -> Select[Any]:
    return readable_versions(
        bindparam("tenant", type_=Text),
        bindparam("generation", type_=Integer),
        texts_given_as("documents"),
        texts_given_as("principals"),
    )
