"""Results derived from several files of a repository: kinds of definitions, and derived documents.

Derived documents are records that are derived from the documents of a different source.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    cast,
    delete,
    func,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import BIT
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.common.batches import batched
from rag_assets.storage.catalog.database import (
    CatalogQueries,
    TenantRef,
    build_row_upsert,
    matches_any,
    matches_document,
    notify,
    read_row,
)
from rag_assets.storage.catalog.documents.status import (
    build_deletion_update,
    build_withholding_update,
    is_of_generation,
    is_same_document,
)
from rag_assets.storage.catalog.records.model import PushedRecord, build_record_row
from rag_assets.storage.catalog.tables import (
    document_index,
    documents,
    record_revisions,
    source_records,
)
from rag_assets.systems.code_memory.catalog.tables import derivations, document_kinds
from rag_assets.systems.code_memory.derived.model import UnresolvedStatement

_KINDS_BATCH_DOCUMENTS = 2_000


@dataclass(frozen=True, slots=True)
class CodeDocument:
    """A document with source code in a build, and the kinds of its definitions as recorded."""

    document_id: str
    source: str
    uri: str
    media_type: str | None
    access_scope: str
    chunk_set_key: str
    kinds: Mapping[str, str]


class KindTable(CatalogQueries):
    """Queries on `document_kinds`."""

    def get(self, tenant_id: str, document_ids: Sequence[str]) -> dict[str, Mapping[str, str]]:
        """Return the kinds of definitions by document; documents without kinds are left out."""
        table = document_kinds.c
        query = select(table.document_id, table.kinds).where(
            table.tenant == tenant_id, matches_any(table.document_id, document_ids)
        )
        return dict(self._database.fetch_rows(query))

    def iter_indexed(
        self, tenant_id: str, generation: int, document_ids: Sequence[str] | None = None
    ) -> Iterator[CodeDocument]:
        """Yield the documents of a build that have chunks: all, or those with the given ids."""
        columns = (
            *(documents.c.document_id, documents.c.source, documents.c.uri),
            *(documents.c.media_type, documents.c.access_scope),
            *(document_index.c.chunk_set_key, document_kinds.c.kinds),
        )
        query = (
            _select_indexed(tenant_id, generation, *columns)
            .outerjoin(document_kinds, matches_document(document_kinds.c, documents.c))
            .order_by(documents.c.uri)
        )
        if document_ids is not None:
            query = query.where(matches_any(document_index.c.document_id, document_ids))
        with self._database.begin() as connection:
            rows = connection.execution_options(yield_per=_KINDS_BATCH_DOCUMENTS).execute(query)
            for row in rows:
                yield read_row(CodeDocument, row, kinds=row.kinds or {})

    def record(self, ref: TenantRef, kinds: Mapping[str, Mapping[str, str]]) -> None:
        """Replace the recorded kinds of definitions in these documents, and index them again."""
        insert = upsert(document_kinds)
        statement = insert.on_conflict_do_update(
            index_elements=["tenant", "document_id"], set_={"kinds": insert.excluded.kinds}
        )
        index = document_index.c
        for batch in batched(kinds, _KINDS_BATCH_DOCUMENTS):
            identities = {id_: {"tenant": ref.id, "document_id": id_} for id_ in batch}
            rows = [{**identities[id_], "kinds": dict(kinds[id_])} for id_ in batch if kinds[id_]]
            none = [id_ for id_ in batch if not kinds[id_]]
            table = document_kinds.c
            with self._database.begin_tenant(ref) as connection:
                if rows:
                    connection.execute(statement, rows)
                conditions = table.tenant == ref.id, matches_any(table.document_id, none)
                connection.execute(delete(document_kinds).where(*conditions))
                conditions = index.tenant == ref.id, matches_any(index.document_id, batch)
                dirty = update(document_index).values(document_key=None, dirty=True)
                connection.execute(dirty.where(*conditions))


_BATCH_RECORDS = 1_000
_DIGITS: Final = 16
"""Number of hexadecimal digits of each half of a document's hash."""

Fingerprint: TypeAlias = tuple[int, int]
"""State of a set of documents: the sums of the first and of the second halves of their hashes.

When a document changes, the sums are updated without reading the other documents.
"""


@dataclass(frozen=True, slots=True)
class DerivedRecords:
    """The derived documents of one source.

    Attributes:
        file_source: the source of the files from which they are derived.
        source: the source under which they are stored.
        fingerprint: the state of these files, as SourceMark.format returns it.
        unresolved: unresolved statements that may add to the documents or change them.
    """

    file_source: str
    source: str
    fingerprint: str
    records: tuple[PushedRecord, ...]
    unresolved: tuple[UnresolvedStatement, ...]


class DerivationTable(CatalogQueries):
    """Queries on the table `derivations` and on the records of derived documents.

    Methods that write raise TenantGone if the tenant was removed.
    """

    def compute_fingerprints(
        self, tenant_id: str, generation: int, sources: Collection[str]
    ) -> dict[str, Fingerprint]:
        """Return a fingerprint for each source; it changes when a document in the build changes."""
        line = func.concat_ws(
            *("/", documents.c.document_id, document_index.c.chunk_set_key),
            documents.c.access_scope,
        )
        halves = (func.substr(func.md5(line), at, _DIGITS) for at in (1, 1 + _DIGITS))
        first, second = (func.sum(cast(cast("x" + half, BIT(64)), BigInteger)) for half in halves)
        query = (
            _select_indexed(tenant_id, generation, documents.c.source, first, second)
            .where(matches_any(documents.c.source, list(sources)))
            .group_by(documents.c.source)
        )
        rows: Sequence[Any] = self._database.fetch_rows(query)
        fingerprints = {source: (int(first), int(second)) for source, first, second in rows}
        return {source: fingerprints.get(source, (0, 0)) for source in sources}

    def list_fingerprints(self, tenant_id: str) -> dict[str, str]:
        """Return the fingerprints of the files from which records were derived, by source."""
        table = derivations.c
        query = select(table.source, table.fingerprint).where(table.tenant == tenant_id)
        return dict(self._database.fetch_rows(query))

    def set_fingerprints(self, ref: TenantRef, fingerprints: Mapping[str, str]) -> None:
        """Replace the recorded fingerprints of sources; with "", records are derived again."""
        table = derivations.c
        with self._database.begin_tenant(ref) as connection:
            for source, fingerprint in fingerprints.items():
                statement = update(derivations).values(fingerprint=fingerprint)
                connection.execute(statement.where(table.tenant == ref.id, table.source == source))

    def list_unresolved(self, tenant_id: str) -> dict[str, list[UnresolvedStatement]]:
        """Return the statements that could not be resolved, by the source of their files."""
        table = derivations.c
        query = select(table.source, table.unresolved).where(table.tenant == tenant_id)
        return {
            source: [UnresolvedStatement.from_json(record) for record in stored]
            for source, stored in self._database.fetch_rows(query)
        }

    def count_changes(self, ref: TenantRef, derived: DerivedRecords) -> int:
        """Return the number of documents that `record` would create, change or delete."""
        with self._database.begin() as connection:
            recorded = _read_record_keys(connection, ref, derived.source)
        new_keys = {record.document_id: record.key for record in derived.records}
        return len({id_ for id_, _ in recorded.items() ^ new_keys.items()})

    def record(self, ref: TenantRef, derived: DerivedRecords) -> int:
        """Record the derived documents of a source; return how many were changed or deleted.

        Documents that are no longer derived from the source are withheld from searches immediately.
        """
        new_records = {record.document_id: record for record in derived.records}
        with self._database.begin_tenant(ref) as connection:
            record_keys = _read_record_keys(connection, ref, derived.source)
            changed = [
                record for id_, record in new_records.items() if record_keys.get(id_) != record.key
            ]
            obsolete = sorted(record_keys.keys() - new_records.keys())
            _put_records(connection, ref, changed)
            _delete_records(connection, ref, obsolete)
            _set_derivation(connection, ref, derived)
            if changed or obsolete:
                notify(connection, ref.id)
        return len(changed) + len(obsolete)

    def withdraw(self, ref: TenantRef, file_source: str, source: str) -> None:
        """Withhold the derived documents of a source from searches until they are derived again."""
        with self._database.begin_tenant(ref) as connection:
            _delete_records(connection, ref, sorted(_read_record_keys(connection, ref, source)))
            _set_derivation(connection, ref, DerivedRecords(file_source, source, "", (), ()))
            notify(connection, ref.id)


def _select_indexed(tenant_id: str, generation: int, *columns: ColumnElement[Any]) -> Select[Any]:
    """Return a query for columns of the documents of a build that have chunks."""
    return (
        select(*columns)
        .select_from(document_index)
        .join(documents, is_same_document())
        .where(
            is_of_generation(tenant_id, generation),
            document_index.c.chunk_set_key.is_not(None),
            documents.c.status != "DELETED",
        )
    )


def compute_fingerprint(documents: Iterable[CodeDocument]) -> Fingerprint:
    """Return the fingerprint that compute_fingerprints would return for these documents."""
    first = second = 0
    for document in documents:
        line = f"{document.document_id}/{document.chunk_set_key}/{document.access_scope}"
        digest = hashlib.md5(line.encode(), usedforsecurity=False).digest()
        half = len(digest) // 2
        first += int.from_bytes(digest[:half], signed=True)
        second += int.from_bytes(digest[half:], signed=True)
    return first, second


def _read_record_keys(connection: Connection, ref: TenantRef, source: str) -> Mapping[str, str]:
    table = source_records.c
    query = select(table.document_id, table.record_key).where(
        table.tenant == ref.id, table.source == source
    )
    return dict(connection.execute(query).all())


def _put_records(connection: Connection, ref: TenantRef, records: Sequence[PushedRecord]) -> None:
    new = upsert(source_records).values(
        revision=record_revisions.next_value(), changed_at=func.clock_timestamp()
    )
    identity = source_records.primary_key.columns
    changed = [column.name for column in source_records.columns if not column.primary_key]
    changes = {name: new.excluded[name] for name in changed}
    statement = new.on_conflict_do_update(index_elements=identity, set_=changes)
    for batch in batched(records, _BATCH_RECORDS):
        connection.execute(statement, [build_record_row(ref, record) for record in batch])


def _delete_records(connection: Connection, ref: TenantRef, document_ids: Sequence[str]) -> None:
    for batch in batched(document_ids, _BATCH_RECORDS):
        ids = list(batch)
        table = source_records.c
        conditions = table.tenant == ref.id, matches_any(table.document_id, ids)
        connection.execute(delete(source_records).where(*conditions))
        connection.execute(build_deletion_update(ref, ids))
        connection.execute(build_withholding_update(ref, ids))


def _set_derivation(connection: Connection, ref: TenantRef, derived: DerivedRecords) -> None:
    unresolved = [statement.as_json for statement in derived.unresolved]
    values = {"fingerprint": derived.fingerprint, "unresolved": unresolved}
    connection.execute(
        build_row_upsert(derivations, {"tenant": ref.id, "source": derived.file_source}, values)
    )
