"""Rows that a scan of stored texts for credentials changes: versions, held texts, documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, delete, func, or_, update
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.storage.catalog.database import TenantRef, among
from rag_assets.storage.catalog.document_rows import numbered_key
from rag_assets.storage.catalog.erasure_tables import held_texts
from rag_assets.storage.catalog.rescan_model import MaskedDocument
from rag_assets.storage.catalog.tables import document_index, documents


def versions_of_texts(
    ref: TenantRef, parse_keys: Sequence[str], *, unknown: bool = False
) -> tuple[ColumnElement[bool], ...]:
    """Return the conditions for versions with these texts, or with an unknown text."""
    held = document_index.c
    either = among(held.parse_key, parse_keys)
    if unknown:
        either = or_(either, held.parse_key.is_(None) & held.indexed_key.is_not(None))
    return held.tenant == ref.id, either


def mask_held_texts(
    connection: Connection, ref: TenantRef, masked: Mapping[str, str | None]
) -> None:
    """Make holds keep the masked texts instead of the unmasked ones."""
    kept = held_texts.c
    rows = connection.execute(
        delete(held_texts)
        .where(kept.tenant == ref.id, among(kept.parse_key, list(masked)))
        .returning(kept.document_id, kept.parse_key)
    ).all()
    new = [
        {"tenant": ref.id, "document_id": id_, "parse_key": masked[key], "chunk_set_key": ""}
        for id_, key in rows
        if masked[key] is not None
    ]
    if new:
        connection.execute(upsert(held_texts).on_conflict_do_nothing(), new)


def index_anew(connection: Connection, ref: TenantRef, present: Mapping[str, int]) -> None:
    """Reindex documents under new keys, different from the keys of the text with credentials."""
    table = documents.c
    for requests in sorted(set(present.values())):
        ids = [id_ for id_, number in present.items() if number == requests]
        connection.execute(
            update(documents)
            .where(
                table.tenant == ref.id,
                among(table.document_id, ids),
                table.edition == requests,
                table.status != "DELETED",
            )
            .values(
                edition=requests + 1,
                document_key=numbered_key(table.document_key, table.edition + 1),
                status="PROCESSING",
                lane=0,
                title=None,
                error_message=None,
                error_kind=None,
                failed_document_key=None,
                failed_config_key=None,
                attempts=0,
                retry_at=None,
                updated_at=func.now(),
            )
        )


def names_statement(ref: TenantRef, one: MaskedDocument) -> Any:
    """Return the statement that masks names of deleted documents, or names no listing writes."""
    values: dict[str, Any] = {"title": one.title}
    if one.before.status == "DELETED":
        names = ("path", "uri", "source_type", "said_title", "metadata")
        values |= {name: getattr(one.change, name) for name in names}
        values["metadata"] = dict(one.change.metadata)
        values["tags"] = list(one.change.tags)
    return (
        update(documents)
        .where(documents.c.tenant == ref.id, documents.c.document_id == one.before.document_id)
        .values(**values)
    )
