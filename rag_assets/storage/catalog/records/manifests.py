"""An application's manifest of its records, compared with the stored records.

A manifest may have any length: Postgres compares it in a temporary table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, TypeAlias

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import ARRAY, TIMESTAMP
from sqlalchemy.types import Boolean, Text

from rag_assets.common.batches import batched
from rag_assets.common.errors import DeletionsHeld
from rag_assets.ingest.sources.diff import are_deletions_suspicious
from rag_assets.ingest.sources.record_bodies import PageBody
from rag_assets.storage.catalog.builds.syncs import (
    accept_manifest,
    read_window,
    record_departures,
    record_held_manifest,
)
from rag_assets.storage.catalog.database import CatalogQueries, TenantRef, notify
from rag_assets.storage.catalog.records.model import RecordChanges
from rag_assets.storage.catalog.records.pages import (
    find_documents_of_removed_pages,
    find_pages_of_records,
)
from rag_assets.storage.catalog.records.table import write_records
from rag_assets.storage.catalog.tables import SCHEMA

NAMED = 10_000
"""Maximum number of differences listed per kind; the others are only counted."""
_BATCH_LINES = 10_000

Difference: TypeAlias = Literal["missing", "stale", "extra"]
"""missing: not stored; stale: a former version is stored; extra: the manifest does not name it."""

_TABLE = sa.text(
    "CREATE TEMPORARY TABLE manifest (source_type text, source_id text, updated_at timestamptz,"
    " sha256 text, is_part boolean) ON COMMIT DROP"
)
_INSERT = sa.text(
    "INSERT INTO manifest SELECT * FROM unnest(:types, :ids, :times, :hashes, :parts)"
).bindparams(
    sa.bindparam("types", type_=ARRAY(Text)),
    sa.bindparam("ids", type_=ARRAY(Text)),
    sa.bindparam("times", type_=ARRAY(TIMESTAMP(timezone=True))),
    sa.bindparam("hashes", type_=ARRAY(Text)),
    sa.bindparam("parts", type_=ARRAY(Boolean)),
)
_STORED = f"""
    SELECT r.source_type, r.source_id, r.document_id, r.modified_at,
        greatest(r.changed_at, r.pushed_at, u.updated_at) > :as_of AS is_later,
        coalesce(u.content_sha256, r.content_sha256) AS sha256
    FROM {SCHEMA}.source_records r
    LEFT JOIN {SCHEMA}.uploads u ON u.tenant = r.tenant AND u.document_id = r.document_id
    WHERE r.tenant = :tenant AND r.source = :source
"""  # noqa: S608 - ours
_MANIFEST_LINES_SQL = """
    SELECT DISTINCT ON (source_type, source_id) source_type, source_id, sha256, true AS named,
        CASE WHEN whole.updated_at IS NOT NULL
             THEN greatest(whole.updated_at, parts.updated_at) END AS updated_at
    FROM manifest whole
    LEFT JOIN (SELECT source_type, source_id, max(updated_at) AS updated_at FROM manifest
               WHERE is_part GROUP BY source_type, source_id) parts USING (source_type, source_id)
    WHERE NOT whole.is_part
    ORDER BY source_type, source_id, whole.updated_at DESC NULLS LAST
"""
_COMPARED = sa.text(
    f"""
    CREATE TEMPORARY TABLE compared ON COMMIT DROP AS
    SELECT source_type, source_id, stored.document_id,
        CASE WHEN stored.document_id IS NULL THEN 'missing'
             WHEN said.named IS NULL THEN 'extra'
             ELSE 'stale' END AS difference
    FROM ({_MANIFEST_LINES_SQL}) said
    FULL JOIN ({_STORED}) stored USING (source_type, source_id)
    WHERE stored.document_id IS NULL OR (said.named IS NULL AND stored.is_later IS NOT TRUE)
        OR said.sha256 <> stored.sha256
        OR (said.updated_at IS NOT NULL AND (stored.modified_at IS NULL
            OR date_trunc('milliseconds', said.updated_at)
                <> date_trunc('milliseconds', stored.modified_at)))
    """  # noqa: S608 - ours
).bindparams(sa.bindparam("as_of", type_=TIMESTAMP(timezone=True)))

_EXTRA = sa.text("SELECT document_id FROM compared WHERE difference = 'extra'")
_NAMED_PAGES = sa.text("SELECT source_id FROM manifest WHERE source_type = :type AND NOT is_part")


@dataclass(frozen=True, slots=True)
class ManifestLine:
    """One line of a manifest, for a record or for a part of a record.

    Attributes:
        is_part: whether the line describes only a part of a record: if the part changed, the record
            changed. Such a line does not state that the record exists.
    """

    source_type: str
    source_id: str
    updated_at: datetime | None = None
    sha256: str | None = None
    is_part: bool = False


@dataclass(frozen=True, slots=True)
class ManifestComparison:
    """The differences between the stored records and a manifest.

    Attributes:
        named: type and id of the first NAMED records of each difference.
        going: number of records that `remove_extra` removes: extra records, and records attached to
            their pages.
    """

    counts: dict[Difference, int]
    named: tuple[tuple[str, str, Difference], ...]
    going: int = 0
    removed: int = 0
    blobs: tuple[str, ...] = ()


class ManifestTable(CatalogQueries):
    """Compares manifests with `source_records`."""

    def compare(
        self,
        ref: TenantRef,
        source: str,
        lines: Iterable[ManifestLine],
        *,
        remove_extra: bool = False,
        allow_deletes: bool = False,
        window_hours: int = 24,
        as_of: datetime | None = None,
        by: str = "",
    ) -> ManifestComparison:
        """Compare the records of one source with a manifest of all of them.

        Args:
            window_hours: period in which earlier manifests count together with this manifest.
            as_of: when the manifest was made. Records pushed later are not extra, even if
                unchanged.

        Raises:
            DeletionsHeld: suspiciously many records would be removed; no record was removed.
        """
        begin = self._database.begin_exclusive if remove_extra else self._database.begin_tenant
        with begin(ref) as connection:
            connection.execute(_TABLE)
            for batch in batched(lines, _BATCH_LINES):
                connection.execute(_INSERT, _build_columns(batch))
            compared = {"tenant": ref.id, "source": source, "as_of": as_of}
            connection.execute(_COMPARED, compared)
            comparison = _read_comparison(connection)
            ids = _find_removals(connection, ref)
            comparison = replace(comparison, going=len(ids))
            if not remove_extra:
                return comparison
            if not ids:
                accept_manifest(connection, ref, source)
                return comparison
            known = connection.scalar(
                sa.text(
                    f"SELECT count(*) FROM {SCHEMA}.source_records"  # noqa: S608 - ours
                    " WHERE tenant = :tenant AND source = :source"
                ),
                {"tenant": ref.id, "source": source},
            )
            window = read_window(connection, ref, source, window_hours)
            departed = len(ids) + window.left
            is_held = not allow_deletes and (
                are_deletions_suspicious(len(ids), known or 0)
                or are_deletions_suspicious(departed, (known or 0) + window.left)
            )
            if not is_held:
                record_departures(
                    connection, ref, source, len(ids), is_confirmed=allow_deletes, is_manifest=True
                )
                records = write_records(connection, ref, RecordChanges((), ids), by)
                notify(connection, ref.id)
                return replace(comparison, removed=len(records.removed), blobs=records.blobs)
            # The event is committed together with the refusal, so the window stays open until
            # somebody decides.
            record_held_manifest(connection, ref, source, len(ids), window)
        earlier = f", after {window.left} within {window.hours} hours" if window.left else ""
        raise DeletionsHeld(
            f"the manifest would remove {len(ids)} of {known} records{earlier}, including"
            " those that belong to pages it does not list: nothing was removed",
            hint="if this is intended, send the manifest again with allow_deletes",
        )


def _find_removals(connection: sa.Connection, ref: TenantRef) -> set[str]:
    """Return the documents of extra records, and for each extra page, the documents attached to it.

    Documents attached to pages below an extra page are included, too, unless the manifest names
    that page or it has another stored record.
    """
    extra = {*connection.scalars(_EXTRA)}
    extra_pages = find_pages_of_records(connection, ref, extra)
    if not extra_pages:
        return extra
    named = connection.scalars(_NAMED_PAGES, {"type": PageBody.TYPE})
    return extra | find_documents_of_removed_pages(
        connection, ref, extra_pages, extra, spared={*named}, keep_stored=True
    )


def _build_columns(batch: Sequence[ManifestLine]) -> dict[str, list[object]]:
    return {
        "types": [line.source_type for line in batch],
        "ids": [line.source_id for line in batch],
        "times": [line.updated_at for line in batch],
        "hashes": [line.sha256 for line in batch],
        "parts": [line.is_part for line in batch],
    }


def _read_comparison(connection: sa.Connection) -> ManifestComparison:
    counted = sa.text("SELECT difference, count(*) FROM compared GROUP BY difference")
    counts: dict[Difference, int] = {"missing": 0, "stale": 0, "extra": 0}
    counts |= {row[0]: row[1] for row in connection.execute(counted)}
    named = sa.text(
        "SELECT source_type, source_id, difference FROM (SELECT *, row_number() OVER"
        " (PARTITION BY difference ORDER BY source_type, source_id) AS place FROM compared) of_kind"
        " WHERE place <= :most ORDER BY difference, place"
    )
    rows = connection.execute(named, {"most": NAMED})
    return ManifestComparison(counts, tuple((row[0], row[1], row[2]) for row in rows))
