"""Documents that a caller may read, in the generation that is searched."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from rag_assets.storage.catalog.accounts.access import is_readable
from rag_assets.storage.catalog.database import CatalogQueries, Texts, matches_any, read_row
from rag_assets.storage.catalog.documents.status import (
    is_behind_source,
    is_excluded,
    is_of_generation,
    is_same_document,
)
from rag_assets.storage.catalog.tables import document_index, documents, serving


@dataclass(frozen=True, slots=True)
class ReadableVersion:
    """The version of a document that a caller may read."""

    indexed_key: str
    uri: str
    access_scope: str
    content_sha256: str | None
    stale: bool


@dataclass(frozen=True, slots=True)
class ReadableDocument:
    """A document with a version that a caller may read.

    Attributes:
        media_type: derived from the file's name; None if the name does not show it.
    """

    document_id: str
    uri: str
    title: str | None
    media_type: str | None
    access_scope: str

    @property
    def place(self) -> str:
        """Return the document's unique position in the list; several records may share a uri."""
        return f"{self.uri} {self.document_id}"


class ReadableDocuments(CatalogQueries):
    """Finds the documents, and their versions in a build, that a caller may read."""

    def versions(
        self,
        tenant_id: str,
        generation: int,
        document_ids: Sequence[str],
        principals: Collection[str],
    ) -> dict[str, ReadableVersion]:
        """Return the versions of those documents that one of these principals may read, by id."""
        query = select_readable_versions(tenant_id, generation, document_ids, principals)
        return map_by_document(self._database.fetch_rows(query))

    def any(self, tenant_id: str, principals: Collection[str]) -> bool:
        """Return whether a tenant's searches find any passage that these principals may read."""
        is_serving = sa.and_(
            document_index.c.tenant == serving.c.tenant,
            document_index.c.generation == serving.c.generation,
        )
        query = (
            sa.select(sa.literal(1))
            .select_from(serving)
            .join(document_index, is_serving)
            .join(documents, is_same_document())
            .where(
                serving.c.tenant == tenant_id,
                document_index.c.indexed_key.is_not(None),
                document_index.c.chunk_count > 0,
                documents.c.status != "DELETED",
                is_readable(documents, principals),
            )
            .limit(1)
        )
        return self._database.fetch_value(query) is not None

    def page(
        self,
        tenant_id: str,
        generation: int,
        principals: Collection[str],
        *,
        limit: int,
        after: str | None = None,
    ) -> list[ReadableDocument]:
        """Return the first documents, by URI, with a version that these principals may read."""
        found = documents.c
        query = (
            select_returnable(
                tenant_id,
                generation,
                *(found.document_id, found.uri, found.title, found.media_type, found.access_scope),
            )
            .where(is_readable(documents, principals))
            .order_by(found.uri, found.document_id)
            .limit(limit)
        )
        if after is not None:
            uri, _, document_id = after.partition(" ")
            query = query.where(sa.tuple_(found.uri, found.document_id) > (uri, document_id))
        return [read_row(ReadableDocument, row) for row in self._database.fetch_rows(query)]


def select_returnable(
    tenant_id: str | sa.BindParameter[str],
    generation: int | sa.BindParameter[int],
    *columns: sa.ColumnElement[Any],
) -> sa.Select[Any]:
    """Return the query for the versions that searches may return.

    They are complete, and their documents are neither deleted nor excluded.
    """
    return (
        sa.select(*columns)
        .select_from(document_index)
        .join(documents, is_same_document())
        .where(
            is_of_generation(tenant_id, generation),
            document_index.c.indexed_key.is_not(None),
            documents.c.status != "DELETED",
            ~is_excluded(),
        )
    )


def select_readable_versions(
    tenant_id: str | sa.BindParameter[str],
    generation: int | sa.BindParameter[int],
    document_ids: Texts,
    principals: Texts,
) -> sa.Select[Any]:
    """Return the query for the versions that a caller may read; see map_by_document()."""
    indexed = document_index.c
    return select_returnable(
        tenant_id,
        generation,
        *(indexed.document_id, indexed.indexed_key, documents.c.uri, documents.c.access_scope),
        documents.c.content_sha256,
        is_behind_source().label("stale"),
    ).where(matches_any(indexed.document_id, document_ids), is_readable(documents, principals))


def map_by_document(rows: Iterable[sa.Row[Any]]) -> dict[str, ReadableVersion]:
    """Return the version of each document in the rows of `select_readable_versions`."""
    return {row.document_id: read_row(ReadableVersion, row) for row in rows}
