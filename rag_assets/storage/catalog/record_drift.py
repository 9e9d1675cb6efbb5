"""Pushed records compared with their documents."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Text, cast, exists, func, not_, or_, select
from sqlalchemy.dialects.postgresql import BYTEA

from rag_assets.common.hashing import HashRange
from rag_assets.storage.catalog.database import Database, among
from rag_assets.storage.catalog.tables import documents, source_records


@dataclass(frozen=True, slots=True)
class RecordDrift:
    """Differences between records and the catalog's documents.

    Attributes:
        compared: how many texts were compared.
        missing: ids of documents without their record. This should not occur: removing a record
            withdraws its document in the same transaction.
        altered: ids of documents whose stored record text differs from the pushed text.
        nobodys: names of sources that have records, but do not belong to the tenant.
    """

    compared: int = 0
    missing: tuple[str, ...] = ()
    altered: tuple[str, ...] = ()
    nobodys: tuple[str, ...] = ()


class RecordDriftQuery:
    """Queries on `source_records` joined with `documents`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, tenant_id: str, sources: Collection[str], compared: HashRange) -> RecordDrift:
        """Return the drift of a tenant's records.

        Args:
            tenant_id: the tenant.
            sources: names of its sources of pushed records.
            compared: ids of the documents to check by hashing their texts again, in Postgres.
        """
        record, row = source_records.c, documents.c
        mine = exists().where(record.tenant == row.tenant, record.document_id == row.document_id)
        missing = select(row.document_id).where(
            row.tenant == tenant_id,
            among(row.source, sources),
            row.status != "DELETED",
            row.content_sha256.is_not(None),
            ~mine,
        )
        within = [record.tenant == tenant_id, record.document_id >= compared.first]
        if compared.end is not None:
            within.append(record.document_id < compared.end)
        content = func.convert_to(record.text, "UTF8", type_=BYTEA)
        digest = cast(func.encode(func.sha256(content), "hex"), Text)
        altered = select(record.document_id).where(
            *within,
            or_(func.octet_length(record.text) != record.size, digest != record.content_sha256),
        )
        nobodys = (
            select(record.source)
            .where(record.tenant == tenant_id, not_(among(record.source, sources)))
            .distinct()
        )
        count = select(func.count()).select_from(source_records).where(*within)
        with self._database.begin() as connection:
            return RecordDrift(
                compared=connection.scalar(count) or 0,
                missing=tuple(sorted(connection.scalars(missing))),
                altered=tuple(sorted(connection.scalars(altered))),
                nobodys=tuple(sorted(connection.scalars(nobodys))),
            )
