"""Symbols and edges of the versions that searches return, for callers who may read them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from rag_assets.ingest.sources.derived import repository_of
from rag_assets.ingest.sources.model import uri_of
from rag_assets.storage.catalog import relation_statements as statements
from rag_assets.storage.catalog.database import Database
from rag_assets.storage.catalog.found_relations import (
    Direction,
    FoundDocument,
    FoundEdge,
    FoundSymbol,
    Readable,
)
from rag_assets.storage.catalog.relation_names import (
    defined,
    local_names_of,
    own_spellings_of,
    qualified,
    spellings_of,
)
from rag_assets.storage.catalog.statements import BlockingRunner, Statement


class RelationQuery:
    """Queries on `symbols` and `edges`."""

    def __init__(self, database: Database) -> None:
        self._statements = BlockingRunner(database)

    def edges(
        self,
        readable: Readable,
        nodes: Sequence[str],
        direction: Direction,
        limit: int,
        *,
        files: Sequence[str] = (),
        without: Collection[str] = (),
    ) -> list[FoundEdge]:
        """The edges that begin or end at nodes, those that begin there first.

        Args:
            readable: the versions that count.
            nodes: names as edges have them.
            direction: out: that are stated of a node; in: that name one.
            limit: the most to return, in each direction.
            files: uris of documents: what they state outside of their definitions is returned too.
            without: kinds that are left out.
        """
        rows = self._rows(
            statements.EDGES,
            readable,
            own=_all(own_spellings_of, nodes) if direction != "in" else [],
            uris=[*files],
            named=_all(spellings_of, nodes) if direction != "out" else [],
            limit=limit,
            without=sorted(without),
        )
        return list(dict.fromkeys(_found_edge(*row) for row in rows))

    def stated(self, readable: Readable, kind: str, limit: int) -> list[FoundEdge]:
        """The edges of a kind, whatever they name."""
        rows = self._rows(statements.STATED, readable, kind=kind, limit=limit, without=[])
        return [_found_edge(*row) for row in rows]

    def named(self, readable: Readable, names: Sequence[str]) -> list[FoundSymbol]:
        """The definitions with these qualified names."""
        wanted = frozenset(names)
        found = self._symbols(statements.NAMED, readable, names=_all(local_names_of, wanted))
        return [one for one in found if one.name in wanted]

    def called(self, readable: Readable, shorts: Sequence[str]) -> list[FoundSymbol]:
        """The definitions that people call by these names; see short_name."""
        return self._symbols(statements.CALLED, readable, names=[*shorts])

    def like(self, readable: Readable, parts: Sequence[str], limit: int) -> list[FoundSymbol]:
        """Some definitions whose names, as people call them, hold one of these parts."""
        return self._symbols(statements.LIKE, readable, parts=[*parts], limit=limit)

    def within(self, readable: Readable, uris: Sequence[str]) -> list[FoundSymbol]:
        """The definitions in documents, in the order of the text."""
        return self._symbols(statements.WITHIN, readable, uris=[*uris])

    def documents(self, readable: Readable, source_types: Sequence[str]) -> list[FoundDocument]:
        """The documents of these types, by uri."""
        wanted = statements.DOCUMENTS_OF_TYPE
        return [
            FoundDocument(*row)
            for row in self._rows(wanted, readable, source_types=[*source_types])
        ]

    def at(self, readable: Readable, uris: Sequence[str]) -> list[FoundDocument]:
        """The documents with these uris."""
        rows = self._rows(statements.DOCUMENTS_AT, readable, uris=[*uris])
        return [FoundDocument(*row) for row in rows]

    def _symbols(
        self, statement: Statement, readable: Readable, **values: Any
    ) -> list[FoundSymbol]:
        return [_found_symbol(*row) for row in self._rows(statement, readable, **values)]

    def _rows(self, statement: Statement, readable: Readable, **values: Any) -> list[Any]:
        values["tenant"] = readable.tenant_id
        values["generation"] = readable.generation
        values["principals"] = [*readable.principals]
        return self._statements.rows(statement, values)


def _found_symbol(symbol: str, role: str, public: bool, *rest: Any) -> FoundSymbol:
    """The definition of a row, whose columns are nearly in the order of its fields."""
    first, last, content_hash, document_id, uri, source, scope, type_, kinds, short = rest
    return FoundSymbol(
        *(defined(symbol, uri), role, public, first, last, content_hash, document_id, uri),
        *(repository_of(source), scope, type_, kinds or {}, symbol, short),
    )


def _found_edge(kind: str, stated_of: str, target: str, *rest: Any) -> FoundEdge:
    """The edge of a row, whose columns are in the order of its fields."""
    how, confidence, first, last, evidence, path, document_id, uri, source, scope = rest
    repository = repository_of(source)
    return FoundEdge(
        *(kind, qualified(stated_of, uri), qualified(target, uri), how, confidence),
        *(first, last, evidence, path, document_id),
        *(uri if path is None else uri_of(repository, path), repository, scope),
    )


def _all(spelled: Callable[[str], Iterator[str]], names: Collection[str]) -> list[str]:
    return list(dict.fromkeys(one for name in names for one in spelled(name)))
