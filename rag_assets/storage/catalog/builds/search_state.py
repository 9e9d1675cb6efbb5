"""The state that a search reads from the catalog, in two asynchronous statements."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import sqlalchemy as sa

from rag_assets.common.errors import UnknownGeneration
from rag_assets.storage.catalog.accounts.access import (
    PUBLIC,
    may_read_public,
    select_readable_scopes,
)
from rag_assets.storage.catalog.builds.generations import Generation, read_generation
from rag_assets.storage.catalog.database import (
    Database,
    TenantRef,
    build_texts_parameter,
    matches_any,
)
from rag_assets.storage.catalog.documents.readable import (
    ReadableVersion,
    map_by_document,
    select_readable_versions,
)
from rag_assets.storage.catalog.documents.versions import ExpectedEntries, select_expected_entries
from rag_assets.storage.catalog.records.pages import select_readable_within
from rag_assets.storage.catalog.statements import Statement, StatementRunner
from rag_assets.storage.catalog.tables import (
    document_index,
    documents,
    generations,
    organizations,
    pages,
    serving,
)
from rag_assets.storage.catalog.tables import tenants as tenants_table
from rag_assets.storage.catalog.tenants.table import State, build_unknown_tenant_error

_MAX_CONNECTIONS = 8
_RECENT = timedelta(minutes=1)
"""Age up to which a deletion counts as recent; no search takes longer."""


@dataclass(frozen=True, slots=True)
class SearchState:
    """A tenant's state at one moment, as one caller may see it.

    Attributes:
        config: the tenant's configuration as JSON; equal text means equal configuration.
        serving: the generation that answers: the requested one, or else the serving one; None
            before the first generation is complete.
        scopes: all access scopes that the caller may read, including the public scope unless the
            caller is a guest. Incomplete if `is_partial`.
        is_partial: whether the caller may read more scopes than `scopes` contains.
        moved: pages whose entries may still have another scope than their documents, each with its
            documents' scope.
    """

    ref: TenantRef
    state: State
    config: str
    serving: Generation | None
    scopes: frozenset[str]
    moved: Mapping[str, str] = field(default_factory=dict)
    is_partial: bool = False
    has_opted_in: bool = False


class SearchStateReader:
    """Reads from the catalog, in one event loop, the state that searches need.

    A grant, a revocation, a publication or a deletion takes effect with the next statement (see
    StatementRunner). Methods raise ServiceUnavailable if Postgres does not answer.
    """

    def __init__(self, database: Database) -> None:
        self._statements = StatementRunner(database, _MAX_CONNECTIONS)
        self._search_state = Statement(_select_search_state(serving.c.generation))
        named = sa.bindparam("generation", type_=sa.Integer)
        self._named_state = Statement(_select_search_state(named))
        self._readable = Statement(
            select_readable_versions(
                sa.bindparam("tenant", type_=sa.Text),
                sa.bindparam("generation", type_=sa.Integer),
                build_texts_parameter("documents"),
                build_texts_parameter("principals"),
            )
        )
        self._expected = Statement(select_expected_entries())
        self._some = Statement(_select_readable_versions())
        self._random = Statement(_select_readable_versions().order_by(sa.func.random()))
        within = select_readable_within(
            sa.bindparam("tenant", type_=sa.Text),
            build_texts_parameter("pages"),
            build_texts_parameter("principals"),
        )
        self._deleted = Statement(_select_recently_deleted())
        self._within = Statement(within.limit(sa.bindparam("limit", type_=sa.Integer)))

    async def search_state(
        self, tenant_id: str, principals: Collection[str], *, max_scopes: int | None = None
    ) -> SearchState:
        """Return a tenant's state with its serving generation, and up to `max_scopes` scopes."""
        return await self._state(self._search_state, tenant_id, principals, max_scopes)

    async def state_of_build(
        self, tenant_id: str, principals: Collection[str], generation: int
    ) -> SearchState:
        """Return the state like search_state(), with this generation instead of the serving one.

        Raises:
            UnknownGeneration: the tenant has no generation of that number, or the generation is
                being removed.
        """
        state = await self._state(self._named_state, tenant_id, principals, generation=generation)
        if state.serving is None or state.serving.state == "REMOVING":
            raise UnknownGeneration(
                f"tenant {tenant_id!r} has no build {generation}",
                hint="use the number of a build that still exists",
            )
        return state

    async def _state(
        self,
        statement: Statement,
        tenant_id: str,
        principals: Collection[str],
        max_scopes: int | None = None,
        **more: object,
    ) -> SearchState:
        limit = None if max_scopes is None else max_scopes + 1
        parameters = {"tenant": tenant_id, "principals": [*principals], "most": limit, **more}
        rows = await self._statements.rows(statement, parameters)
        if not rows:
            raise build_unknown_tenant_error(tenant_id)
        row = rows[0]
        scopes = row.scopes or ()
        return SearchState(
            TenantRef(tenant_id, row.incarnation),
            row.tenant_state,
            row.config,
            None if row.generation is None else read_generation(row),
            frozenset((*scopes, PUBLIC) if may_read_public(principals) else scopes),
            dict(row.moved or ()),
            limit is not None and len(scopes) == limit,
            bool(row.has_opted_in),
        )

    async def readable(
        self,
        tenant_id: str,
        generation: int,
        document_ids: Sequence[str],
        principals: Collection[str],
    ) -> dict[str, ReadableVersion]:
        """Return the versions of those documents that one of these principals may read, by id."""
        build = {"tenant": tenant_id, "generation": generation}
        parameters = {**build, "documents": [*document_ids], "principals": [*principals]}
        return map_by_document(await self._statements.rows(self._readable, parameters))

    async def pick_random_versions(
        self, tenant_id: str, generation: int, *, limit: int
    ) -> list[tuple[str, str, int]]:
        """Return random documents of a build, as (document id, indexed key, passage count)."""
        parameters = {"tenant": tenant_id, "generation": generation, "limit": limit}
        rows = await self._statements.rows(self._random, parameters)
        return [(row.document_id, row.indexed_key, row.chunk_count) for row in rows]

    async def has_several_documents(self, tenant_id: str, generation: int) -> bool:
        """Return whether a build has passages of more than one document."""
        parameters = {"tenant": tenant_id, "generation": generation, "limit": 2}
        return len(await self._statements.rows(self._some, parameters)) > 1

    async def were_any_just_deleted(self, tenant_id: str, document_ids: Collection[str]) -> bool:
        """Return whether one of these documents was deleted within the last minute."""
        parameters = {"tenant": tenant_id, "documents": [*document_ids]}
        return bool(await self._statements.rows(self._deleted, parameters))

    async def expected_entries(self, tenant_id: str, generation: int) -> ExpectedEntries | None:
        """Return how many entries a build should have; None if the build does not exist."""
        rows = await self._statements.rows(self._expected, {"tenants": [tenant_id]})
        matching = (row for row in rows if row.generation == generation)
        return next(map(ExpectedEntries.from_row, matching), None)

    async def pages_within(
        self, tenant_id: str, uuids: Sequence[str], principals: Collection[str], *, max_pages: int
    ) -> list[str]:
        """Return which of these pages and the pages below them one of the principals may read.

        Args:
            max_pages: maximum number of pages; if there are more, `max_pages + 1` are returned, so
                that the caller notices.
        """
        parameters = {"tenant": tenant_id, "pages": [*uuids], "principals": [*principals]}
        rows = await self._statements.rows(self._within, {**parameters, "limit": max_pages + 1})
        return [row.uuid for row in rows]

    async def close(self) -> None:
        """Close the connections, in the event loop that opened them."""
        await self._statements.close()


def _select_search_state(generation: sa.ColumnElement[int]) -> sa.Select[Any]:
    tenant = tenants_table.c
    max_scopes = sa.bindparam("most", type_=sa.BigInteger)
    scopes = select_readable_scopes(
        tenant.id, build_texts_parameter("principals"), max_scopes
    ).scalar_subquery()
    moved = (
        sa.select(sa.func.jsonb_object_agg(pages.c.uuid, pages.c.scope))
        .where(pages.c.tenant == tenant.id, pages.c.moved.is_not(None))
        .scalar_subquery()
    )
    return (
        sa.select(
            tenant.incarnation,
            tenant.state.label("tenant_state"),
            sa.cast(tenant.config, sa.Text).label("config"),
            generations,
            scopes.label("scopes"),
            moved.label("moved"),
            organizations.c.has_opted_in.label("has_opted_in"),
        )
        .select_from(tenants_table)
        .outerjoin(organizations, organizations.c.id == tenant.organization)
        .outerjoin(serving, serving.c.tenant == tenant.id)
        .outerjoin(
            generations,
            (generations.c.tenant == tenant.id) & (generations.c.generation == generation),
        )
        .where(tenant.id == sa.bindparam("tenant", type_=sa.Text))
    )


def _select_readable_versions() -> sa.Select[Any]:
    indexed = document_index.c
    return (
        sa.select(indexed.document_id, indexed.indexed_key, indexed.chunk_count)
        .where(
            indexed.tenant == sa.bindparam("tenant", type_=sa.Text),
            indexed.generation == sa.bindparam("generation", type_=sa.Integer),
            indexed.indexed_key.is_not(None),
            indexed.chunk_count > 0,
        )
        .limit(sa.bindparam("limit", type_=sa.Integer))
    )


def _select_recently_deleted() -> sa.Select[Any]:
    return (
        sa.select(sa.literal(1))
        .where(
            documents.c.tenant == sa.bindparam("tenant", type_=sa.Text),
            matches_any(documents.c.document_id, build_texts_parameter("documents")),
            documents.c.status == "DELETED",
            documents.c.changed_at > sa.func.now() - _RECENT,
        )
        .limit(1)
    )
