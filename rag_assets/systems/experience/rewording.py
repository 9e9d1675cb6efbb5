"""Rewrites the records of entries that were written by an earlier version of the rules.

The searched text, the keys and the metadata of an entry are derived from its captured fields. When
the rules change, the next run of a tenant rewrites its records, and the run after that embeds the
texts that differ. Until then the earlier versions answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, bindparam, func, select, update

from rag_assets.common.hashing import sha256_hex
from rag_assets.pipeline.context import TenantContext
from rag_assets.storage.catalog.database import TenantRef, notify
from rag_assets.storage.catalog.records.contents import keep_texts
from rag_assets.storage.catalog.tables import documents, record_revisions, source_records
from rag_assets.systems.experience.entries import entry_of, record_of
from rag_assets.systems.experience.tables import knowledge_staging
from rag_assets.systems.experience.wording import (
    WORDING_VERSION,
    compared_problem,
    exact_key,
    problem_key,
    solution_of,
)

_BATCH: Final = 500
MAX_ENTRIES_PER_RUN: Final = 5_000
"""Maximum number of entries that one run rewrites; the next run rewrites the rest."""
_STAGED = knowledge_staging.c


def select_outdated(tenant_id: str) -> Select[Any]:
    """Return a query for entries with records of an earlier version of the rules."""
    return select(knowledge_staging).where(
        _STAGED.tenant == tenant_id,
        _STAGED.record_version < WORDING_VERSION,
        _STAGED.document_id.is_not(None),
    )


def rewrite_outdated(ctx: TenantContext) -> int:
    """Rewrite outdated records in batches; return the number of entries.

    Each batch is a separate transaction, after which the run may end.
    """
    count = 0
    while count < MAX_ENTRIES_PER_RUN:
        ctx.guard()
        with ctx.catalog.database.begin_exclusive(ctx.ref) as connection:
            query = select_outdated(ctx.ref.id).order_by(_STAGED.id).limit(_BATCH)
            rows = connection.execute(query).all()
            if not rows:
                return count
            _rewrite_records(connection, ctx.ref, rows)
            notify(connection, ctx.ref.id)
        count += len(rows)
    return count


def restore_ages(connection: Connection, ref: TenantRef) -> None:
    """Set the age of documents to that of their entries.

    A rewritten text is embedded again, which must not extend its retention.
    """
    connection.execute(
        update(documents)
        .where(
            documents.c.tenant == ref.id,
            _STAGED.tenant == ref.id,
            _STAGED.document_id == documents.c.document_id,
            _STAGED.embedded,
            documents.c.embedded_at > _STAGED.embedded_at,
        )
        .values(embedded_at=_STAGED.embedded_at)
    )


def _rewrite_records(connection: Connection, ref: TenantRef, rows: Sequence[Row[Any]]) -> None:
    entries = {row.document_id: entry_of(row) for row in rows}
    of_tenant = source_records.c.tenant == ref.id
    stored = select(source_records.c.document_id, source_records.c.source).where(
        of_tenant, source_records.c.document_id.in_(entries)
    )
    records = [
        record_of(ref, row.source, entries[row.document_id]) for row in connection.execute(stored)
    ]
    keep_texts(connection, ref, {one["document_id"]: one["content_sha256"] for one in records})
    changed = ("record_key", "text", "size", "content_sha256", "said")
    if records:
        connection.execute(
            update(source_records)
            .where(
                of_tenant,
                source_records.c.document_id == bindparam("document"),
                source_records.c.record_key != bindparam("key"),
            )
            .values(
                {name: bindparam(f"new_{name}") for name in changed}
                | {
                    "revision": record_revisions.next_value(),
                    "changed_at": func.clock_timestamp(),
                    "waiting_since": func.clock_timestamp(),
                    "lane": 1,
                }
            ),
            [
                {f"new_{name}": one[name] for name in changed}
                | {"document": one["document_id"], "key": one["record_key"]}
                for one in records
            ],
        )
    connection.execute(
        update(knowledge_staging)
        .where(_STAGED.tenant == ref.id, _STAGED.id == bindparam("entry"))
        .values(
            exact_key=bindparam("whole"),
            problem_key=bindparam("problem"),
            kept_texts=bindparam("texts"),
            record_version=WORDING_VERSION,
        ),
        [_compute_keys(row) for row in rows],
    )


def _compute_keys(row: Row[Any]) -> dict[str, Any]:
    entry = entry_of(row)
    compared = {sha256_hex(compared_problem(entry)), sha256_hex(solution_of(entry))}
    return {
        "entry": row.id,
        "whole": exact_key(entry),
        "problem": problem_key(entry),
        "texts": [key for key in row.kept_texts if key in compared],
    }
