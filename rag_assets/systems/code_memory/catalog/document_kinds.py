"""Kinds of the definitions in source code, which also depend on other files of the repository."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import and_, delete, select, update
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.common.batches import batched
from rag_assets.storage.catalog.database import Database, TenantRef, is_any_of
from rag_assets.storage.catalog.documents.status import is_of_generation, is_same_document
from rag_assets.storage.catalog.tables import document_index, documents
from rag_assets.systems.code_memory.catalog.tables import document_kinds

_BATCH = 2_000


@dataclass(frozen=True, slots=True)
class CodeDocument:
    """A source code document; its facts help to decide the kinds of definitions in others."""

    document_id: str
    source: str
    uri: str
    media_type: str | None
    access_scope: str
    chunk_set_key: str
    kinds: Mapping[str, str]


class KindTable:
    """Queries on `document_kinds`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, tenant_id: str, document_ids: Sequence[str]) -> dict[str, Mapping[str, str]]:
        """Return the kinds of these documents; documents without recorded kinds are left out."""
        table = document_kinds.c
        query = select(table.document_id, table.kinds).where(
            table.tenant == tenant_id, is_any_of(table.document_id, document_ids)
        )
        with self._database.begin() as connection:
            return dict(connection.execute(query).all())

    def indexed(
        self, tenant_id: str, generation: int, document_ids: Sequence[str] | None = None
    ) -> Iterator[CodeDocument]:
        """Yield the documents that have a version in a build, with their recorded kinds.

        Args:
            tenant_id, generation: the build.
            document_ids: only these documents; None for all.
        """
        known = and_(
            document_kinds.c.tenant == documents.c.tenant,
            document_kinds.c.document_id == documents.c.document_id,
        )
        query = (
            select(
                *(documents.c.document_id, documents.c.source, documents.c.uri),
                *(documents.c.media_type, documents.c.access_scope),
                document_index.c.chunk_set_key,
                document_kinds.c.kinds,
            )
            .select_from(document_index)
            .join(documents, is_same_document())
            .outerjoin(document_kinds, known)
            .where(
                is_of_generation(tenant_id, generation, document_ids),
                document_index.c.chunk_set_key.is_not(None),
                documents.c.status != "DELETED",
            )
            .order_by(documents.c.uri)
        )
        with self._database.begin() as connection:
            for row in connection.execution_options(yield_per=_BATCH).execute(query):
                yield CodeDocument(
                    *(row.document_id, row.source, row.uri, row.media_type, row.access_scope),
                    chunk_set_key=row.chunk_set_key,
                    kinds=row.kinds or {},
                )

    def record(self, ref: TenantRef, kinds: Mapping[str, Mapping[str, str]]) -> None:
        """Record the kinds of definitions, and mark the documents to be written again.

        Args:
            kinds: all known kinds, by document; an empty mapping deletes the document's row.
        """
        known = upsert(document_kinds)
        statement = known.on_conflict_do_update(
            index_elements=["tenant", "document_id"], set_={"kinds": known.excluded.kinds}
        )
        index = document_index.c
        for batch in batched(kinds, _BATCH):
            rows = [
                {"tenant": ref.id, "document_id": id_, "kinds": dict(kinds[id_])}
                for id_ in batch
                if kinds[id_]
            ]
            none = [id_ for id_ in batch if not kinds[id_]]
            table = document_kinds.c
            with self._database.begin_for(ref) as connection:
                if rows:
                    connection.execute(statement, rows)
                connection.execute(
                    delete(document_kinds).where(
                        table.tenant == ref.id, is_any_of(table.document_id, none)
                    )
                )
                connection.execute(
                    update(document_index)
                    .where(index.tenant == ref.id, is_any_of(index.document_id, batch))
                    .values(document_key=None, dirty=True)
                )
