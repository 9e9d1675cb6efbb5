"""What a search asks of the catalog: in two statements, and without blocking an event loop."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Integer, Select, Text, bindparam, cast, func, select

from rag_assets.storage.catalog.access import PUBLIC
from rag_assets.storage.catalog.database import Database, TenantRef, among, texts_given_as
from rag_assets.storage.catalog.generations import Generation, generation_of
from rag_assets.storage.catalog.index_rows import (
    ReadableVersion,
    readable_by_document,
    readable_versions,
)
from rag_assets.storage.catalog.statements import Statement, StatementRunner
from rag_assets.storage.catalog.tables import access_scopes, generations, serving
from rag_assets.storage.catalog.tables import tenants as tenants_table
from rag_assets.storage.catalog.tenants import State, unknown_tenant

_CONNECTIONS = 8


@dataclass(frozen=True, slots=True)
class SearchState:
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


class SearchStateReader:
    """Reads what searches need, in one event loop.

    A grant or a revocation, a publication, a deletion holds with the next statement (see
    StatementRunner).

    Args:
        database: where the catalog is.
    """

    def __init__(self, database: Database) -> None:
        self._statements = StatementRunner(database, _CONNECTIONS)
        self._standing = Statement.of(_standing_statement())
        self._readable = Statement.of(_readable_statement())

    async def standing(self, tenant_id: str, principals: Collection[str]) -> SearchState:
        """A tenant, the generation that answers, and what may be read, all of one moment.

        Raises:
            UnknownTenant: there is none of that id.
            ServiceUnavailable: Postgres does not answer.
        """
        rows = await self._statements.rows(
            self._standing, {"tenant": tenant_id, "principals": [*principals]}
        )
        if not rows:
            raise unknown_tenant(tenant_id)
        row = rows[0]
        return SearchState(
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
        rows = await self._statements.rows(
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
        await self._statements.close()


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
