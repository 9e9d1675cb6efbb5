"""Scans of stored data with new rules for credentials: findings are hidden and masked.

A scan is an erasure of kind `secrets`. Each batch hides its findings from searches and advances the
scan's position in one transaction, so that a killed scan continues from that position.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.plugins.registry import installed_systems
from rag_assets.storage.catalog.builds.lake_keys import RecordedKeys
from rag_assets.storage.catalog.database import (
    CatalogQueries,
    TenantRef,
    is_of_documents,
    matches_any,
    write_event,
)
from rag_assets.storage.catalog.documents.model import (
    Document,
    DocumentChange,
    build_document_upsert,
    build_row,
    read_document,
)
from rag_assets.storage.catalog.documents.status import (
    build_reindex_update,
    build_withholding_update,
    select_entry_count,
)
from rag_assets.storage.catalog.erasure.erasures import (
    Erasure,
    end_erasure,
    insert_erasure,
    read_erasure,
)
from rag_assets.storage.catalog.erasure.receipts import Receipt, erasures, held_texts
from rag_assets.storage.catalog.tables import SCHEMA, document_index, documents, events, tenants


@dataclass(frozen=True, slots=True)
class ScanPosition:
    """The position that a scan has reached.

    Attributes:
        after: the last key, document id or column that was scanned; empty before the first.
    """

    phase: str
    after: str = ""

    @classmethod
    def from_scan(cls, scan: Erasure) -> ScanPosition:
        """Return the position recorded with a scan."""
        return cls(scan.progress["phase"], scan.progress["after"])


@dataclass(frozen=True, slots=True)
class FoundTexts:
    """Texts in the lake in which credentials were found.

    Attributes:
        masked: by parse_key, the key in the lake under which the masked text is kept for holds;
            None if the text could not be masked, and is removed.
        present: documents whose current text is one of them, each with its number of reindex
            requests.
    """

    masked: Mapping[str, str | None] = field(default_factory=dict)
    chunk_sets: Collection[str] = ()
    hashes: Collection[str] = ()
    present: Mapping[str, int] = field(default_factory=dict)
    rules: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class MaskedDocument:
    """A document's row with its credentials masked."""

    before: Document
    change: DocumentChange
    title: str | None


def has_texts(
    ref: TenantRef, parse_keys: Sequence[str], *, matches_unknown: bool = False
) -> tuple[sa.ColumnElement[bool], ...]:
    """Return the SQL conditions that a version of a tenant has one of these texts.

    Args:
        matches_unknown: whether indexed versions without a recorded text match, too.
    """
    indexed = document_index.c
    has_text = matches_any(indexed.parse_key, parse_keys)
    if matches_unknown:
        has_text = sa.or_(has_text, indexed.parse_key.is_(None) & indexed.indexed_key.is_not(None))
    return indexed.tenant == ref.id, has_text


def mask_held_texts(
    connection: sa.Connection, ref: TenantRef, masked: Mapping[str, str | None]
) -> None:
    """Replace the texts that holds keep by their masked forms.

    Args:
        masked: by parse_key, the key of the masked text; None removes the text.
    """
    columns = held_texts.c
    rows = connection.execute(
        sa.delete(held_texts)
        .where(columns.tenant == ref.id, matches_any(columns.parse_key, list(masked)))
        .returning(columns.document_id, columns.parse_key)
    ).all()
    new = [
        {"tenant": ref.id, "document_id": id_, "parse_key": masked[key], "chunk_set_key": ""}
        for id_, key in rows
        if masked[key] is not None
    ]
    if new:
        connection.execute(upsert(held_texts).on_conflict_do_nothing(), new)


def reindex_documents(
    connection: sa.Connection, ref: TenantRef, present: Mapping[str, int]
) -> None:
    """Reindex documents under new keys, so that no run uses the text with credentials again.

    Args:
        present: by document, its number of reindex requests when it was scanned; a document with
            more requests is already being reindexed.
    """
    row = documents.c
    for requests in sorted(set(present.values())):
        ids = [id_ for id_, number in present.items() if number == requests]
        conditions = (matches_any(row.document_id, ids), row.edition == requests)
        connection.execute(build_reindex_update(ref, 0, *conditions).values(title=None))


def build_name_masking_update(ref: TenantRef, document: MaskedDocument) -> Any:
    """Return the statement that masks a document's title, or all names of a deleted document."""
    values: dict[str, Any] = {"title": document.title}
    if document.before.status == "DELETED":
        names = ("path", "uri", "source_type", "said_title", "metadata")
        values |= {name: getattr(document.change, name) for name in names}
        values["metadata"] = dict(document.change.metadata)
        values["tags"] = list(document.change.tags)
    return (
        sa.update(documents)
        .where(documents.c.tenant == ref.id, documents.c.document_id == document.before.document_id)
        .values(**values)
    )


class RescanTable(CatalogQueries):
    """Starts, records and ends scans."""

    def begin(
        self, ref: TenantRef, version: str, *, rule: str, by: str, at: datetime
    ) -> Erasure | None:
        """Start to scan a tenant's stores with a version of the rules, and record the version.

        Returns:
            the scan; None if the stores were already scanned with this version, or are empty.
        """
        of_tenant = tenants.c.id == ref.id, tenants.c.incarnation == ref.incarnation
        with self._database.begin_exclusive(ref) as connection:
            known = connection.scalar(sa.select(tenants.c.scanned).where(*of_tenant)) or {}
            if known.get("version") == version:
                return None
            scanned = {**known, "version": version}
            connection.execute(sa.update(tenants).where(*of_tenant).values(scanned=scanned))
            if not _has_stored_data(connection, ref):
                return None
            progress = asdict(ScanPosition("texts"))
            return insert_erasure(
                connection, ref, "secrets", rule=rule, by=by, at=at, progress=progress
            )

    def versions(self, tenant_id: str, parse_keys: Collection[str]) -> list[RecordedKeys]:
        """Return the lake keys of versions with one of these texts, in builds and under holds."""
        queries = [
            sa.select(table.c.document_id, table.c.parse_key, table.c.chunk_set_key).where(
                table.c.tenant == tenant_id, matches_any(table.c.parse_key, parse_keys)
            )
            for table in (document_index, held_texts)
        ]
        rows = self._database.fetch_rows(queries[0].union(queries[1]))
        return [RecordedKeys(*row) for row in rows]

    def list_documents_after(self, tenant_id: str, after: str, limit: int) -> list[Document]:
        """Return a tenant's next documents, also deleted ones, in the order of their ids."""
        query = (
            sa.select(documents)
            .where(documents.c.tenant == tenant_id, documents.c.document_id > after)
            .order_by(documents.c.document_id)
            .limit(limit)
        )
        return [read_document(row) for row in self._database.fetch_rows(query)]

    def withhold_texts(
        self, ref: TenantRef, scan: Erasure, found: FoundTexts, *, after: str
    ) -> Erasure:
        """Withhold all versions with these texts; reindex their documents without credentials."""
        indexed = document_index.c
        keys = list(found.masked)
        with self._database.begin_tenant(ref) as connection:
            known = set(
                connection.scalars(sa.select(indexed.parse_key).where(*has_texts(ref, keys)))
            )
            # A version with an unknown text may have a text that no known version has.
            of_texts = has_texts(ref, keys, matches_unknown=not known.issuperset(keys))
            rows = connection.execute(
                sa.select(indexed.document_id, indexed.chunk_count).where(*of_texts)
            ).all()
            emptied = dict.fromkeys(("indexed_key", "document_key", "config_key"), sa.null())
            emptied |= dict.fromkeys(("parse_key", "chunk_set_key"), sa.null())
            connection.execute(
                sa.update(document_index)
                .where(*of_texts)
                .values(**emptied, chunk_count=0, dirty=True)
            )
            mask_held_texts(connection, ref, found.masked)
            reindex_documents(connection, ref, found.present)
            texts = Counter("removed" if key is None else "masked" for key in found.masked.values())
            return _record_batch(
                connection,
                scan,
                ScanPosition("texts", after),
                document_ids={row.document_id for row in rows} | found.present.keys(),
                parse_keys=keys,
                chunk_set_keys=found.chunk_sets,
                hashes=found.hashes,
                counts={
                    "texts": {f"texts {what}": number for what, number in texts.items()},
                    "index": {"entries": sum(row.chunk_count for row in rows)},
                    "rules": found.rules,
                },
            )

    def mask_documents(
        self,
        ref: TenantRef,
        scan: Erasure,
        masked: Sequence[MaskedDocument],
        rules: Mapping[str, int],
        *,
        after: str,
    ) -> Erasure:
        """Write documents' rows with masked names, and withhold their versions in all builds."""
        if not masked:
            return self.advance(scan, ScanPosition("names", after), {})
        ids = [document.before.document_id for document in masked]
        living = [document for document in masked if document.before.status != "DELETED"]
        with self._database.begin_tenant(ref) as connection:
            entries = connection.scalar(
                select_entry_count(is_of_documents(document_index.c, ref.id, ids))
            )
            if living:
                rows = [build_row(ref, one.change, 0) for one in living]
                connection.execute(build_document_upsert(), rows)
            for document in masked:
                connection.execute(build_name_masking_update(ref, document))
            connection.execute(build_withholding_update(ref, ids))
            return _record_batch(
                connection,
                scan,
                ScanPosition("names", after),
                document_ids=ids,
                counts={
                    "documents": {"names masked": len(masked)},
                    "index": {"entries": entries or 0},
                    "rules": rules,
                },
            )

    def advance(
        self, scan: Erasure, place: ScanPosition, counts: Mapping[str, Mapping[str, int]]
    ) -> Erasure:
        """Record the new position of a scan, and the number of items that its last batch masked."""
        with self._database.begin_tenant(scan.ref) as connection:
            return _record_batch(connection, scan, place, counts=counts)

    def end(self, scan: Erasure, proof: Mapping[str, Any]) -> Receipt | None:
        """End a scan; return the receipt, or None if the scan found no credentials."""
        ref = scan.ref
        with self._database.begin_exclusive(ref) as connection:
            if not scan.counts:
                connection.execute(sa.delete(erasures).where(erasures.c.id == scan.id))
                _store_result(connection, ref, {"found": {}, "receipt": None})
                return None
            receipt = end_erasure(connection, scan, proof)
            rules = dict(scan.counts.get("rules", {}))
            _store_result(connection, ref, {"found": rules, "receipt": receipt.number})
            payload = {
                "documents": len(scan.document_ids),
                "rules": rules,
                "receipt": str(receipt.id),
            }
            write_event(connection, ref.id, "secrets_masked", payload)
            return receipt


def read_hashes(scan: Erasure) -> set[str]:
    """Return the text_sha256 of the chunks in which a scan has found credentials."""
    return set(scan.progress.get("hashes", ()))


def _has_stored_data(connection: sa.Connection, ref: TenantRef) -> bool:
    texts = {
        name.partition(".")[0] for system in installed_systems() for name in system.system.texts
    }
    of_systems = (sa.table(name, sa.column("tenant"), schema=SCHEMA) for name in texts)
    stored_data = (
        sa.select(rows.c.tenant).where(rows.c.tenant == ref.id).exists()
        for rows in (documents, events, *of_systems)
    )
    return bool(connection.scalar(sa.select(sa.or_(*stored_data))))


def _record_batch(
    connection: sa.Connection,
    scan: Erasure,
    place: ScanPosition,
    *,
    document_ids: Collection[str] = (),
    parse_keys: Collection[str] = (),
    chunk_set_keys: Collection[str] = (),
    hashes: Collection[str] = (),
    counts: Mapping[str, Mapping[str, int]],
) -> Erasure:
    """Add a batch's findings to a scan and its new position; return the changed scan."""
    total = {store: Counter(of_store) for store, of_store in scan.counts.items()}
    for store, of_store in counts.items():
        if counter := Counter({what: number for what, number in of_store.items() if number}):
            total.setdefault(store, Counter()).update(counter)
    row = connection.execute(
        sa.update(erasures)
        .where(erasures.c.id == scan.id)
        .values(
            document_ids=sorted({*scan.document_ids, *document_ids}),
            parse_keys=sorted({*scan.parse_keys, *parse_keys}),
            chunk_set_keys=sorted({*scan.chunk_set_keys, *chunk_set_keys}),
            counts={store: dict(of_store) for store, of_store in total.items()},
            progress={**asdict(place), "hashes": sorted(read_hashes(scan).union(hashes))},
        )
        .returning(erasures)
    ).one()
    return read_erasure(row)


def _store_result(connection: sa.Connection, ref: TenantRef, result: Mapping[str, Any]) -> None:
    """Store a scan's result for the asset check."""
    of_tenant = tenants.c.id == ref.id, tenants.c.incarnation == ref.incarnation
    known = connection.scalar(sa.select(tenants.c.scanned).where(*of_tenant)) or {}
    connection.execute(sa.update(tenants).where(*of_tenant).values(scanned={**known, **result}))
