"""The queue of a workspace, counted again from rows, without the statement of the product."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import Connection, text

from benchmarks.pushing.site import SOURCE, Workspace
from rag_assets.storage.catalog.database import Database
from rag_assets.storage.catalog.freshness import FreshnessQuery

_RECORDS = """
SELECT document_id, revision FROM rag_catalog.source_records
WHERE tenant = :tenant AND resolved_at IS NULL AND source_type <> 'file'
"""
_DOCUMENTS = """
SELECT document_id, revision, status, access_scope FROM rag_catalog.documents
WHERE tenant = :tenant
"""
_HELD = "SELECT document_id FROM rag_catalog.document_index WHERE tenant = :tenant"


@dataclass(frozen=True, slots=True)
class Counted:
    """The queue at one moment.

    Attributes:
        told: by the product.
        recounted: from rows, of the same moment.
    """

    told: int
    recounted: int


def counted(workspace: Workspace) -> Counted:
    """What the product counts, and what is counted from rows, as of one moment."""
    with workspace.catalog.database.begin() as connection:
        connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY"))
        database = cast("Database", _OneMoment(connection))
        told = FreshnessQuery(database).of(workspace.id, [SOURCE]).queue_depth
        return Counted(told, _recounted(connection, workspace.id))


def _recounted(connection: Connection, tenant_id: str) -> int:
    def rows(query: str) -> list[Any]:
        return [*connection.execute(text(query), {"tenant": tenant_id})]

    records = {row.document_id: row.revision for row in rows(_RECORDS)}
    held = {row.document_id for row in rows(_HELD)}
    waiting, known = set(), set()
    for row in rows(_DOCUMENTS):
        known.add(row.document_id)
        out = row.access_scope == "tree:excluded"
        pushed_again = records.get(row.document_id, row.revision) != row.revision
        to_index = row.status == "PROCESSING" and not out
        to_remove = (row.status == "DELETED" or out) and row.document_id in held
        if pushed_again or to_index or to_remove:
            waiting.add(row.document_id)
    return len(waiting | (records.keys() - known))


class _OneMoment:
    """A database whose transactions are all one."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        yield self._connection
