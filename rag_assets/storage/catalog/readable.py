"""Documents that a caller may read, in the generation that is searched."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlalchemy import and_, literal, select, tuple_

from rag_assets.storage.catalog.access import is_readable
from rag_assets.storage.catalog.database import Database
from rag_assets.storage.catalog.index_rows import (
    ReadableDocument,
    ReadableVersion,
    readable_by_document,
    readable_versions,
    returnable,
    same_document,
)
from rag_assets.storage.catalog.tables import document_index, documents, serving


class ReadableDocuments:
    """Queries on `document_index`, `documents` and `access_scopes`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def versions(
        self,
        tenant_id: str,
        generation: int,
        document_ids: Sequence[str],
        principals: Collection[str],
    ) -> dict[str, ReadableVersion]:
        """Return the version of each named document that one of these principals may read."""
        query = readable_versions(tenant_id, generation, document_ids, principals)
        with self._database.begin() as connection:
            return readable_by_document(connection.execute(query))

    def any(self, tenant_id: str, principals: Collection[str]) -> bool:
        """Return whether these principals may read a passage that the tenant's searches find."""
        is_serving = and_(
            document_index.c.tenant == serving.c.tenant,
            document_index.c.generation == serving.c.generation,
        )
        query = (
            select(literal(1))
            .select_from(serving)
            .join(document_index, is_serving)
            .join(documents, same_document())
            .where(
                serving.c.tenant == tenant_id,
                document_index.c.indexed_key.is_not(None),
                document_index.c.chunk_count > 0,
                documents.c.status != "DELETED",
                is_readable(documents, principals),
            )
            .limit(1)
        )
        with self._database.begin() as connection:
            return connection.scalar(query) is not None

    def page(
        self,
        tenant_id: str,
        generation: int,
        principals: Collection[str],
        *,
        limit: int,
        after: str | None = None,
    ) -> list[ReadableDocument]:
        """Return the first documents, by URI, with a version that these principals may read.

        Args:
            tenant_id, generation: the tenant's generation.
            principals: the caller's principals.
            limit: the maximum number of documents to return.
            after: only documents after the document with this `place`.
        """
        found = documents.c
        query = (
            returnable(
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
            query = query.where(tuple_(found.uri, found.document_id) > (uri, document_id))
        with self._database.begin() as connection:
            return [ReadableDocument(*row) for row in connection.execute(query)]
