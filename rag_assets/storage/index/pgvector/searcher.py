"""Searches of vectors in Postgres from an event loop, and their filters as SQL conditions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import psycopg
from psycopg import sql
from psycopg_pool import AsyncConnectionPool

from rag_assets.storage.index.model import (
    SYMBOL,
    Candidate,
    EntryFilter,
    MovedPages,
    Owner,
    RankingRequest,
)
from rag_assets.storage.index.pgvector import tables
from rag_assets.storage.index.pgvector.tables import (
    BUILD_ERRORS,
    FAILURES,
    OPTIONS,
    SECONDS,
    build_driver_url,
    build_unavailable_error,
    format_vector,
)


class Conditions:
    """An entry filter as SQL conditions, with the values of their parameters."""

    def __init__(self, entry_filter: EntryFilter) -> None:
        self.values: dict[str, Any] = {}
        self._each = [*self._match_columns(entry_filter), *self._match_metadata(entry_filter)]

    @property
    def all(self) -> sql.Composed:
        """Return all conditions joined by AND; true if there are none."""
        return sql.SQL(" AND ").join(self._each) if self._each else sql.SQL("{}").format(True)

    def _match_columns(self, wanted: EntryFilter) -> list[sql.Composed]:
        conditions = (
            [] if wanted.scopes is None else [self._match_scopes(wanted.scopes, wanted.moved)]
        )
        conditions += [
            self._match_values(column, values)
            for column, values in (
                ("page_uuid", wanted.pages),
                ("source_type", wanted.source_types),
                ("source", wanted.sources),
                ("document_id", wanted.documents),
                ("language", wanted.languages),
            )
            if values is not None
        ]
        if wanted.without_source_types:
            left_out = self._match_values("source_type", wanted.without_source_types)
            conditions.append(sql.SQL("NOT {}").format(left_out))
        if wanted.tags is not None:
            tags = sql.SQL("c.tags @> {}::text[]").format(self._add_value([*wanted.tags]))
            conditions.append(tags if wanted.tags else sql.SQL("{}").format(False))
        if wanted.paths is not None:
            folders = self._add_value([path.rstrip("/") for path in wanted.paths])
            conditions.append(
                sql.SQL(
                    "EXISTS (SELECT FROM unnest({}::text[]) AS folder"
                    " WHERE c.uri = folder OR starts_with(c.uri, folder || '/'))"
                ).format(folders)
            )
        if wanted.modified_after is not None:
            conditions.append(
                sql.SQL("c.modified_at >= {}").format(self._add_value(wanted.modified_after))
            )
        if wanted.modified_before is not None:
            conditions.append(
                sql.SQL("c.modified_at < {}").format(self._add_value(wanted.modified_before))
            )
        return conditions

    def _match_scopes(self, scopes: Collection[str], moved: MovedPages) -> sql.Composed:
        """Return the SQL condition that a caller with these scopes may read an entry."""
        return sql.SQL("({} OR ({} AND NOT {}))").format(
            self._match_values("page_uuid", sorted(moved.readable)),
            self._match_values("access_scope", sorted(scopes)),
            self._match_values("page_uuid", sorted(moved.unreadable)),
        )

    def _match_metadata(self, wanted: EntryFilter) -> list[sql.Composed]:
        conditions = [
            self._match_metadata_values(key, values) for key, values in wanted.metadata.items()
        ]
        return conditions + [
            sql.SQL("NOT {}").format(self._match_metadata_values(key, values))
            for key, values in wanted.without_metadata.items()
        ]

    def _match_metadata_values(self, key: str, values: Sequence[str | None]) -> sql.Composed:
        """Return the SQL condition that a metadata key has one of these values."""
        name = self._add_value(key)
        values_parameter = self._add_value([value for value in values if value is not None])
        has_value = sql.SQL("coalesce(c.metadata -> {}::text ?| {}::text[], false)").format(
            name, values_parameter
        )
        if None not in values:
            return has_value
        return sql.SQL("({} OR NOT c.metadata ? {}::text)").format(has_value, name)

    def _match_values(self, column: str, values: Sequence[str]) -> sql.Composed:
        # Null equals none of the values, so a row with null is neither included nor excluded.
        return sql.SQL("coalesce({} = ANY({}::text[]), false)").format(
            sql.Identifier("c", column), self._add_value([*values])
        )

    def _add_value(self, value: Any) -> sql.Placeholder:
        name = f"filter_{len(self.values)}"
        self.values[name] = value
        return sql.Placeholder(name)


_MAX_CONNECTIONS = 8
_PAUSE_SECONDS = 5.0
_MAX_EXACT_ROWS = 4_000
"""Maximum number of rows that are compared exactly. This is faster than searching a graph if few of
the graph's nodes match."""
_OVERSAMPLING = 2
"""Number of candidates per returned entry; candidates are ranked again by vectors of full
precision."""
# The order is by an expression without an index. Otherwise Postgres might search the graph here as
# well, and miss entries that were found.
_SELECT_FOUND = sql.SQL(
    "SELECT c.entry_id, c.document_id, c.index_key, c.uri, c.text_key, c.ordinal,"
    " c.within, 1 - (v.embedding <=> %(asked)s::vector) AS cosine,"
    " CASE WHEN %(symbols)s THEN coalesce(c.metadata -> %(symbol)s ->> 0, '') ELSE '' END"
    " FROM found"
    " JOIN {chunks} AS c USING (rag_chunk_id) JOIN {vectors} AS v USING (rag_chunk_id)"
    " ORDER BY cosine DESC, c.entry_id LIMIT %(returned)s"
)
_COUNT = sql.SQL(
    "SELECT count(*) FROM (SELECT FROM {chunks} AS c WHERE {conditions} LIMIT %(most)s) AS few"
)
_SELECT_NEAREST = sql.SQL(
    "WITH found AS MATERIALIZED (SELECT v.rag_chunk_id FROM {vectors} AS v"
    " JOIN {chunks} AS c USING (rag_chunk_id) WHERE {conditions}"
    " ORDER BY {distance} LIMIT %(wide)s) {found}"
)
_EACH = sql.SQL(
    "WITH found AS MATERIALIZED (SELECT c.rag_chunk_id FROM {chunks} AS c WHERE {conditions})"
    " {found}"
)


class PgVectorSearcher:
    """Ranks a build's entries by similarity to a vector."""

    def __init__(self, url: str, prefix: str) -> None:
        self._url = build_driver_url(url)
        self._layout = tables.SchemaNames(prefix)
        self._pool: AsyncConnectionPool[psycopg.AsyncConnection[Any]] | None = None
        self._away_until = 0.0

    async def ranking(
        self, owner: Owner, vector: npt.NDArray[np.float32], request: RankingRequest
    ) -> list[Candidate]:
        """Return the ranking of a request by a vector: candidates, best first, ties broken by id.

        It is always complete: if the graph search returns too few entries, all entries that pass
        the filter are compared.

        Raises:
            VectorsUnavailable: the server does not answer, or did not a moment ago.
        """
        if time.monotonic() < self._away_until:
            raise build_unavailable_error(TimeoutError())
        try:
            async with asyncio.timeout(SECONDS):
                return await self._rank(owner, vector, request)
        except (*FAILURES, TimeoutError) as error:
            # Searches continue in the first store: the next searches should not wait for this
            # server.
            if not isinstance(error, BUILD_ERRORS):
                self._away_until = time.monotonic() + _PAUSE_SECONDS
            raise build_unavailable_error(error) from None

    async def close(self) -> None:
        """Close the connections, in the event loop that opened them."""
        if self._pool is not None:
            await self._pool.close()
            self._pool = None

    async def _rank(
        self, owner: Owner, vector: npt.NDArray[np.float32], request: RankingRequest
    ) -> list[Candidate]:
        search = _Search(self._layout.schema(owner), vector, request)
        async with (await self._open_pool()).connection(timeout=SECONDS) as connection:
            few = await search.count(connection)
            if few > _MAX_EXACT_ROWS:
                rows = await search.nearest(connection)
                if len(rows) >= request.returned:
                    return rows
            return await search.compare_all(connection)

    async def _open_pool(self) -> AsyncConnectionPool[psycopg.AsyncConnection[Any]]:
        if self._pool is None:
            self._pool = AsyncConnectionPool(
                self._url, min_size=0, max_size=_MAX_CONNECTIONS, kwargs=OPTIONS, open=False
            )
            await self._pool.open()
        return self._pool


class _Search:
    """Runs the SQL statements of one request."""

    def __init__(
        self, schema: str, vector: npt.NDArray[np.float32], request: RankingRequest
    ) -> None:
        conditions = Conditions(request.entry_filter)
        self._parts: Mapping[str, sql.Composable] = {
            "chunks": sql.Identifier(schema, "rag_chunks"),
            "vectors": sql.Identifier(schema, "rag_vectors"),
            "conditions": conditions.all,
        }
        self._dimensions = len(vector)
        self._values = {
            **conditions.values,
            "asked": format_vector(vector),
            "wide": _OVERSAMPLING * request.limit,
            "returned": request.returned,
            "most": _MAX_EXACT_ROWS + 1,
            "symbols": request.symbols,
            "symbol": SYMBOL,
        }

    async def count(self, connection: psycopg.AsyncConnection[Any]) -> int:
        """Return the number of entries that pass the filter, but at most _MAX_EXACT_ROWS + 1."""
        [[number]] = await self._fetch(connection, _COUNT)
        return int(number)

    async def nearest(self, connection: psycopg.AsyncConnection[Any]) -> list[Candidate]:
        """Return the most similar entries that the graph search finds; it may miss some."""
        rows = await self._fetch(
            connection, _SELECT_NEAREST, distance=tables.distance(self._dimensions)
        )
        return [_read_candidate(row) for row in rows]

    async def compare_all(self, connection: psycopg.AsyncConnection[Any]) -> list[Candidate]:
        """Return the most similar entries after comparing all entries that pass the filter."""
        return [_read_candidate(row) for row in await self._fetch(connection, _EACH)]

    async def _fetch(
        self, connection: psycopg.AsyncConnection[Any], template: sql.SQL, **more: sql.Composable
    ) -> list[Any]:
        found = _SELECT_FOUND.format(**self._parts)
        statement = template.format(**self._parts, **more, found=found)
        return await (await connection.execute(statement, self._values)).fetchall()


def _read_candidate(row: Sequence[Any]) -> Candidate:
    """Return the candidate in a row that _SELECT_FOUND selects."""
    id_, document_id, index_key, uri, text_key, ordinal, within, cosine, symbol = row
    return Candidate(
        *(id_, document_id, index_key, float(cosine), uri, text_key, ordinal),
        within=tuple(within or ()),
        symbol=symbol,
    )
