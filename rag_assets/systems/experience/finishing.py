"""The last step of a sync: assigns published entries to patterns and updates their checkpoints.

Searches find an entry once it has a pattern. Entries are compared only with published entries, in
the order of their capture, so that a run after an interrupted run reaches the same result.

The searched text, the keys and the metadata of an entry are derived from its captured fields. When
the rules for them change, this step rewrites the records, and the next run embeds the changed
texts. Until then, searches find the earlier texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias
from uuid import UUID, uuid5

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    bindparam,
    exists,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.common.batches import batched
from rag_assets.common.failure_kinds import WORDS, FailureKind
from rag_assets.common.hashing import sha256_hex
from rag_assets.pipeline.clock_guard import ClockDoubt, get_deletion_time
from rag_assets.pipeline.context import TenantContext
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef, notify
from rag_assets.storage.catalog.installation.clock import select_time_to_record
from rag_assets.storage.catalog.records.contents import keep_texts
from rag_assets.storage.catalog.tables import (
    document_index,
    documents,
    record_revisions,
    serving,
    source_records,
)
from rag_assets.systems.experience.assignment import Assigner, Assignment
from rag_assets.systems.experience.entries import build_record, entry_from_row
from rag_assets.systems.experience.merges import (
    delete_empty_patterns,
    delete_questions,
    find_living_roots,
)
from rag_assets.systems.experience.service import OPEN_STATES
from rag_assets.systems.experience.tables import (
    checkpoints,
    experience_merges,
    experience_patterns,
    knowledge_staging,
)
from rag_assets.systems.experience.wording import (
    WORDING_VERSION,
    compute_exact_key,
    compute_problem_key,
    describe_comparable_problem,
    describe_solution,
)

_ASSIGNMENT_BATCH_ENTRIES = 200
_REWRITE_BATCH_ENTRIES: Final = 500
MAX_ENTRIES_PER_RUN: Final = 5_000
"""Maximum number of entries that one run rewrites; the next run rewrites the rest."""
_MERGE_IDS = UUID("7f0c9a52-5d0e-4a30-9a55-5d3e0f7f7c11")
_PERMANENT_FAILURES: frozenset[FailureKind] = frozenset(
    {"unreadable", "empty", "too-large", "too-slow", "too-complex", "credential", "text-rejected"}
)
"""Failures after which an entry is never tried again."""
_FAILURES_FOR_PERSON: frozenset[FailureKind] = frozenset(
    {
        *("key-refused", "key-unreadable", "model-refused", "quota-exhausted", "address-refused"),
        *("request-refused", "wrong-vectors", "installation", "unsupported"),
    }
)
"""Failures that stop a checkpoint until a person acts."""
_STAGED = knowledge_staging.c


_PlacedEntry: TypeAlias = tuple[Assignment, UUID]
"""The assignment of an entry to a present pattern, and the root of that pattern."""


class ExperienceFollowUp:
    """Assigns published entries to patterns and records the progress of checkpoints."""

    def unfinished(self, catalog: Catalog, tenant_id: str) -> str | None:
        """Return why a tenant needs a run although no source changed; None if it needs none."""
        with catalog.database.begin() as connection:
            if connection.scalar(select(_select_published_entries(tenant_id).exists())):
                return "entries of a checkpoint have no pattern yet"
            if connection.scalar(select(_select_finished_checkpoints(tenant_id).exists())):
                return "a finished checkpoint is not marked as done yet"
            if connection.scalar(select(select_outdated_entries(tenant_id).exists())):
                return "records of entries must be rewritten by newer rules"
        return None

    def kept_texts(self, catalog: Catalog, tenant_id: str) -> frozenset[str]:
        """Return the hashes of texts whose vectors are kept for comparisons."""
        query = select(func.unnest(_STAGED.kept_texts)).where(_STAGED.tenant == tenant_id)
        with catalog.database.begin() as connection:
            return frozenset(connection.scalars(query))

    def finish(self, ctx: TenantContext, serving: Generation) -> Mapping[str, Any]:
        """Assign published entries to patterns; return counts as run metadata."""
        with ctx.catalog.database.begin() as connection:
            rows = connection.execute(_select_published_entries(ctx.ref.id)).all()
        entries = [entry_from_row(row) for row in rows]
        assigner = Assigner(ctx, serving)
        merged, reasons = 0, set[str]()
        for batch in batched(entries, _ASSIGNMENT_BATCH_ENTRIES):
            assigned, reason = assigner.assign(batch)
            ctx.guard()
            self._store_assignments(ctx, assigned)
            merged += sum(assignment.way is not None for assignment in assigned)
            reasons.update(filter(None, [reason]))
        done = self._update_checkpoints(ctx)
        rewritten = rewrite_outdated_records(ctx)
        if not entries and not done and not rewritten:
            return {}
        shown: dict[str, Any] = {
            "entries found from now on": len(entries),
            "merged into patterns": merged,
            "checkpoints done": done,
        }
        if rewritten:
            shown["entries written by newer rules"] = rewritten
        if reasons:
            shown["not compared by vectors"] = "; ".join(sorted(reasons))
        return shown

    def _store_assignments(self, ctx: TenantContext, assigned: Sequence[Assignment]) -> None:
        now = ctx.clock.now()
        with ctx.catalog.database.begin_exclusive(ctx.ref) as connection:
            present = _read_pending_ids(
                connection, ctx.ref, [assignment.entry.id for assignment in assigned]
            )
            homes = {assignment.home_id for assignment in assigned}
            placed = _find_current_patterns(
                [assignment for assignment in assigned if assignment.entry.id in present],
                find_living_roots(connection, ctx.ref.id, homes),
            )
            _add_patterns(connection, ctx.ref, placed)
            _add_merges(connection, ctx.ref, placed)
            _mark_embedded(connection, ctx.ref, placed, now)

    def _update_checkpoints(self, ctx: TenantContext) -> int:
        """Update the open checkpoints; return the number of finished checkpoints."""
        done = 0
        trusted = get_deletion_time(ctx.catalog, ctx.clock)
        with ctx.catalog.database.begin_exclusive(ctx.ref) as connection:
            _record_failures(connection, ctx.ref)
            _restore_embedding_times(connection, ctx.ref)
            open_ids = select(checkpoints.c.id).where(
                checkpoints.c.tenant == ctx.ref.id,
                checkpoints.c.state.in_((*OPEN_STATES, "stopped")),
            )
            for id_ in connection.scalars(open_ids).all():
                done += _update_checkpoint(connection, ctx, id_)
            delete_empty_patterns(connection, ctx.ref)
            if not isinstance(trusted, ClockDoubt):
                days = timedelta(days=ctx.tenant.retrieval.events_days)
                delete_questions(connection, ctx.ref, trusted - days)
        return done


FOLLOW_UP = ExperienceFollowUp()


def _select_published_entries(tenant_id: str) -> Select[Any]:
    """Return the query for published entries that have no pattern yet, in capture order.

    An entry is published if the serving build contains it.
    """
    is_published = (
        exists()
        .where(
            serving.c.tenant == _STAGED.tenant,
            document_index.c.tenant == _STAGED.tenant,
            document_index.c.generation == serving.c.generation,
            document_index.c.document_id == _STAGED.document_id,
            document_index.c.indexed_key.is_not(None),
            document_index.c.chunk_count > 0,
        )
        .correlate(knowledge_staging)
    )
    return (
        select(knowledge_staging)
        .where(_STAGED.tenant == tenant_id, _is_pending(), is_published)
        .order_by(_STAGED.timestamp, _STAGED.id)
    )


def _select_finished_checkpoints(tenant_id: str) -> Select[Any]:
    """Return the query for checkpoints that are still open although no entry is pending.

    An interrupted run leaves such checkpoints.
    """
    pending = (
        exists()
        .where(
            _STAGED.tenant == checkpoints.c.tenant,
            _STAGED.checkpoint_id == checkpoints.c.id,
            _is_pending(),
        )
        .correlate(checkpoints)
    )
    return select(checkpoints.c.id).where(
        checkpoints.c.tenant == tenant_id, checkpoints.c.state.in_(OPEN_STATES), ~pending
    )


def _is_pending() -> ColumnElement[bool]:
    return _STAGED.checkpoint_id.is_not(None) & ~_STAGED.embedded & _STAGED.failure.is_(None)


def _read_pending_ids(connection: Connection, ref: TenantRef, ids: Sequence[UUID]) -> set[UUID]:
    query = select(_STAGED.id).where(_STAGED.tenant == ref.id, _STAGED.id.in_(ids), _is_pending())
    return set(connection.scalars(query))


def _find_current_patterns(
    assigned: Sequence[Assignment], roots: Mapping[UUID, UUID]
) -> list[_PlacedEntry]:
    """Return assigned entries with their current patterns.

    Since the assignment, a pattern may have been merged or retracted.

    Args:
        assigned: the assignments, in the order in which the entries were captured.
        roots: id of the root pattern, by id of each home pattern whose root still has an entry.
    """
    places = {home: (home, root) for home, root in roots.items()}
    placed = []
    for assignment in assigned:
        place = places.get(assignment.home_id)
        if place is None:
            own = assignment.entry.id
            # Later entries of the same deleted pattern join this one.
            places[assignment.home_id] = places[own] = (own, own)
            placed.append((replace(assignment, home_id=own, other_id=None), own))
        else:
            home, root = place
            other = assignment.other_id if assignment.home_id in roots else home
            placed.append((replace(assignment, home_id=home, other_id=other), root))
    return placed


def _add_patterns(connection: Connection, ref: TenantRef, placed: Sequence[_PlacedEntry]) -> None:
    rows = [
        {
            "tenant": ref.id,
            "id": assignment.home_id,
            "problem_id": assignment.problem_id or assignment.home_id,
        }
        for assignment, _ in placed
        if assignment.home_id == assignment.entry.id
    ]
    if rows:
        connection.execute(upsert(experience_patterns).on_conflict_do_nothing(), rows)


def _add_merges(connection: Connection, ref: TenantRef, placed: Sequence[_PlacedEntry]) -> None:
    rows = [
        {
            "tenant": ref.id,
            "id": uuid5(_MERGE_IDS, f"{assignment.entry.id}/{assignment.other_id}"),
            "entry_id": assignment.entry.id,
            "other_id": assignment.other_id,
            "pattern_id": root,
            "way": assignment.way,
            "problem_cosine": assignment.problem_cosine,
            "solution_cosine": assignment.solution_cosine,
            "bounds": dict(assignment.bounds),
            "merged_by": "rag-assets",
        }
        for assignment, root in placed
        if assignment.other_id is not None
    ]
    if rows:
        connection.execute(insert(experience_merges), rows)


def _mark_embedded(
    connection: Connection, ref: TenantRef, placed: Sequence[_PlacedEntry], now: datetime
) -> None:
    rows = [
        {
            "entry": assignment.entry.id,
            "pattern": root,
            "home": assignment.home_id,
            "texts": list(assignment.kept_texts),
        }
        for assignment, root in placed
    ]
    if rows:
        found_at = select_time_to_record(now)
        connection.execute(
            update(knowledge_staging)
            .where(_STAGED.tenant == ref.id, _STAGED.id == bindparam("entry"))
            .values(
                embedded=True,
                embedded_at=found_at,
                pattern_id=bindparam("pattern"),
                home_id=bindparam("home"),
                kept_texts=bindparam("texts"),
            ),
            rows,
        )
        # The retention of an entry starts when searches find it, shortly after it was embedded.
        document_ids = [assignment.entry.document_id for assignment, _ in placed]
        connection.execute(
            update(documents)
            .where(documents.c.tenant == ref.id, documents.c.document_id.in_(document_ids))
            .values(embedded_at=found_at)
        )


def _record_failures(connection: Connection, ref: TenantRef) -> None:
    """Mark entries whose documents failed permanently, so that checkpoints can end."""
    failed = select(documents.c.error_kind).where(
        documents.c.tenant == ref.id,
        documents.c.document_id == _STAGED.document_id,
        documents.c.status == "FAILED",
        documents.c.error_kind.in_(sorted(_PERMANENT_FAILURES)),
    )
    connection.execute(
        update(knowledge_staging)
        .where(_STAGED.tenant == ref.id, _is_pending(), failed.exists())
        .values(failure=failed.scalar_subquery())
    )


def _update_checkpoint(connection: Connection, ctx: TenantContext, checkpoint: UUID) -> bool:
    """Recount the entries of a checkpoint and update its state; return whether it is done."""
    of_it = (_STAGED.tenant == ctx.ref.id, _STAGED.checkpoint_id == checkpoint)
    counts = select(
        func.count().filter(_STAGED.embedded),
        func.count().filter(_STAGED.failure.is_not(None)),
        func.count().filter(_is_pending()),
    ).where(*of_it)
    embedded, failed, pending_count = connection.execute(counts).one()
    merged = connection.scalar(
        select(func.count())
        .select_from(experience_merges)
        .join(
            knowledge_staging,
            (_STAGED.tenant == experience_merges.c.tenant)
            & (_STAGED.id == experience_merges.c.entry_id),
        )
        .where(*of_it, experience_merges.c.split_at.is_(None), experience_merges.c.way != "manual")
    )
    kind = _find_failure_kind(connection, ctx.ref, checkpoint) if pending_count else None
    state = "running" if embedded else "waiting"
    if not pending_count:
        state = "done"
    elif kind in _FAILURES_FOR_PERSON:
        state = "stopped"
    connection.execute(
        update(checkpoints)
        .where(checkpoints.c.tenant == ctx.ref.id, checkpoints.c.id == checkpoint)
        .values(
            state=state,
            embedded=embedded,
            merged=merged,
            failed=failed,
            error=None if kind is None else WORDS[kind].text,
            processed_at=None if pending_count else ctx.clock.now(),
        )
    )
    return not pending_count


def _find_failure_kind(
    connection: Connection, ref: TenantRef, checkpoint: UUID
) -> FailureKind | None:
    """Return why an unfinished entry of a checkpoint failed; None if none has failed."""
    query = (
        select(documents.c.error_kind)
        .join(
            knowledge_staging,
            (_STAGED.tenant == documents.c.tenant)
            & (_STAGED.document_id == documents.c.document_id),
        )
        .where(
            _STAGED.tenant == ref.id,
            _STAGED.checkpoint_id == checkpoint,
            _is_pending(),
            documents.c.status == "FAILED",
            documents.c.error_kind.is_not(None),
        )
        .limit(1)
    )
    kind: FailureKind | None = connection.scalar(query)
    return kind


def select_outdated_entries(tenant_id: str) -> Select[Any]:
    """Return the query for entries with records that an earlier version of the rules wrote."""
    return select(knowledge_staging).where(
        _STAGED.tenant == tenant_id,
        _STAGED.record_version < WORDING_VERSION,
        _STAGED.document_id.is_not(None),
    )


def rewrite_outdated_records(ctx: TenantContext) -> int:
    """Rewrite outdated records in batches; return the number of rewritten entries.

    Each batch is a separate transaction.
    """
    count = 0
    while count < MAX_ENTRIES_PER_RUN:
        ctx.guard()
        with ctx.catalog.database.begin_exclusive(ctx.ref) as connection:
            query = (
                select_outdated_entries(ctx.ref.id)
                .order_by(_STAGED.id)
                .limit(_REWRITE_BATCH_ENTRIES)
            )
            rows = connection.execute(query).all()
            if not rows:
                return count
            _rewrite_records(connection, ctx.ref, rows)
            notify(connection, ctx.ref.id)
        count += len(rows)
    return count


def _restore_embedding_times(connection: Connection, ref: TenantRef) -> None:
    """Set the embedding time of documents to the embedding time of their entries.

    A rewritten text is embedded again; this must not extend its retention.
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
    entries = {row.document_id: entry_from_row(row) for row in rows}
    of_tenant = source_records.c.tenant == ref.id
    stored = select(source_records.c.document_id, source_records.c.source).where(
        of_tenant, source_records.c.document_id.in_(entries)
    )
    records = [
        build_record(ref, row.source, entries[row.document_id])
        for row in connection.execute(stored)
    ]
    keep_texts(
        connection, ref, {record["document_id"]: record["content_sha256"] for record in records}
    )
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
                {f"new_{name}": record[name] for name in changed}
                | {"document": record["document_id"], "key": record["record_key"]}
                for record in records
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
        [_compute_key_columns(row) for row in rows],
    )


def _compute_key_columns(row: Row[Any]) -> dict[str, Any]:
    entry = entry_from_row(row)
    compared = {
        sha256_hex(describe_comparable_problem(entry)),
        sha256_hex(describe_solution(entry)),
    }
    return {
        "entry": row.id,
        "whole": compute_exact_key(entry),
        "problem": compute_problem_key(entry),
        "texts": [key for key in row.kept_texts if key in compared],
    }
