"""Merges, splits and deletes patterns, and deletes questions.

Merged patterns form trees by `merged_into`. Each entry has a home and a pattern. The home is the
pattern to which it belongs if manual merges are ignored; the pattern is the root above its home.
Splitting off an entry that came by a manual merge undoes the whole merge, including entries that
joined later.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID, uuid4, uuid5

from sqlalchemy import Connection, delete, func, insert, or_, select, update
from sqlalchemy.dialects.postgresql import distinct_on

from rag_assets.common.errors import InvalidRequest
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.erasure.holds import is_row_held, select_source
from rag_assets.storage.catalog.erasure.retention import Cutoffs
from rag_assets.systems.experience.entries import entry_from_row
from rag_assets.systems.experience.errors import UnknownExperience
from rag_assets.systems.experience.tables import (
    experience_feedback,
    experience_merges,
    experience_patterns,
    experience_questions,
    knowledge_staging,
)
from rag_assets.systems.experience.wording import describe_comparable_problem, normalize_text

_STAGED = knowledge_staging.c
_MERGES = experience_merges.c
_PATTERNS = experience_patterns.c
_SPLIT_IDS = UUID("0e4f9a7a-2a9b-4f0e-8a55-6f2b7d1f0c02")


def merge_patterns(
    connection: Connection, ref: TenantRef, pattern: UUID, into: UUID, *, by: str
) -> None:
    """Merge a pattern into a different one.

    Args:
        pattern, into: root patterns, both with entries.

    Raises:
        UnknownExperience: one of them was merged or retracted meanwhile.
    """
    if find_living_roots(connection, ref.id, {pattern, into}) != {pattern: pattern, into: into}:
        raise UnknownExperience(
            "the pattern has been merged into a different pattern",
            hint="list the patterns again and use an id from the new list",
        )
    moved = connection.scalars(
        update(knowledge_staging)
        .where(_STAGED.tenant == ref.id, _STAGED.pattern_id == pattern)
        .values(pattern_id=into)
        .returning(_STAGED.id)
    )
    rows = [
        {
            "tenant": ref.id,
            "id": uuid4(),
            "entry_id": entry_id,
            "pattern_id": into,
            "former_id": pattern,
            "way": "manual",
            "merged_by": by,
        }
        for entry_id in moved
    ]
    if rows:
        connection.execute(insert(experience_merges), rows)
        _set_parent(connection, ref, pattern, into)


def split_entry(
    connection: Connection, ref: TenantRef, pattern: UUID, entry_id: UUID, *, by: str
) -> UUID:
    """Move an entry out of a pattern; a manual merge is undone as a whole.

    Returns:
        the new pattern of the entry.

    Raises:
        InvalidRequest: the pattern has no other entry.
        UnknownExperience: the pattern has no entry with this id.
    """
    members = select(_STAGED.id, _STAGED.home_id).where(
        _STAGED.tenant == ref.id, _STAGED.pattern_id == pattern
    )
    homes: dict[UUID, UUID] = {row.id: row.home_id for row in connection.execute(members)}
    if entry_id not in homes:
        raise UnknownExperience(
            "the pattern has no entry with this id",
            hint="use an id from the list of entries of the pattern",
        )
    if len(homes) == 1:
        raise InvalidRequest(
            "entry_id: the only entry of a pattern cannot be split off",
            hint="choose a pattern with at least two entries",
        )
    path = _read_with_ancestors(connection, ref.id, homes[entry_id])
    if len(path) > 1:
        result = path[-2]
        parts = _read_with_descendants(connection, ref.id, result)
        moved = [entry for entry, home in homes.items() if home in parts]
        _set_parent(connection, ref, result, None)
        values = {"pattern_id": result}
    else:
        result = entry_id if entry_id != pattern else uuid5(_SPLIT_IDS, str(entry_id))
        moved = [entry_id]
        _ensure_pattern(connection, ref, pattern, result)
        values = {"pattern_id": result, "home_id": result}
    connection.execute(
        update(knowledge_staging)
        .where(_STAGED.tenant == ref.id, _STAGED.id.in_(moved))
        .values(**values)
    )
    _end_merges(connection, ref, moved, pattern, by)
    return result


def have_same_problem(connection: Connection, tenant_id: str, first: UUID, second: UUID) -> bool:
    """Return whether two patterns are known to solve one problem.

    That is the case if both belong to the same stored problem, or if an entry of the first pattern
    describes its problem in the same words as an entry of the second. All approvals of a gate use
    the same words, so their words are not compared.
    """
    return any(
        problems_of(connection, tenant_id, first) & problems_of(connection, tenant_id, second)
        for problems_of in (_read_problem_ids, _read_problem_texts)
    )


def find_living_roots(
    connection: Connection, tenant_id: str, patterns: Collection[UUID]
) -> dict[UUID, UUID]:
    """Return the root pattern of each of these patterns, by pattern id.

    A root is its own root. Unknown patterns, and patterns whose root has no entry, are left out.
    """
    above = (
        select(_PATTERNS.id.label("part"), _PATTERNS.id, _PATTERNS.merged_into)
        .where(_PATTERNS.tenant == tenant_id, _PATTERNS.id.in_(patterns))
        .cte("above", recursive=True)
    )
    parents = select(above.c.part, _PATTERNS.id, _PATTERNS.merged_into).where(
        _PATTERNS.tenant == tenant_id, _PATTERNS.id == above.c.merged_into
    )
    above = above.union(parents)
    has_entry = (
        select(_STAGED.id)
        .where(_STAGED.tenant == tenant_id, _STAGED.pattern_id == above.c.id)
        .exists()
    )
    roots = select(above.c.part, above.c.id).where(above.c.merged_into.is_(None), has_entry)
    return {row.part: row.id for row in connection.execute(roots)}


def _read_problem_ids(connection: Connection, tenant_id: str, pattern: UUID) -> set[UUID]:
    """Return the problems of a pattern and of all patterns below it."""
    family = _read_with_descendants(connection, tenant_id, pattern)
    query = select(_PATTERNS.problem_id).where(
        _PATTERNS.tenant == tenant_id, _PATTERNS.id.in_(family)
    )
    return set(connection.scalars(query))


def _read_problem_texts(connection: Connection, tenant_id: str, pattern: UUID) -> set[str]:
    """Return the different problems in the entries of a pattern, in normal form."""
    query = (
        select(knowledge_staging)
        .where(
            _STAGED.tenant == tenant_id,
            _STAGED.pattern_id == pattern,
            _STAGED.entry_type != "gate_approval",
        )
        .ext(distinct_on(_STAGED.problem_key))
        .order_by(_STAGED.problem_key)
    )
    return {
        normalize_text(describe_comparable_problem(entry_from_row(row)))
        for row in connection.execute(query)
    }


def _read_with_ancestors(connection: Connection, tenant_id: str, pattern: UUID) -> list[UUID]:
    """Return a pattern and its ancestors up to the root."""
    path = [pattern]
    while True:
        above: UUID | None = connection.scalar(
            select(_PATTERNS.merged_into).where(
                _PATTERNS.tenant == tenant_id, _PATTERNS.id == path[-1]
            )
        )
        if above is None:
            return path
        path.append(above)


def _read_with_descendants(connection: Connection, tenant_id: str, pattern: UUID) -> set[UUID]:
    """Return a pattern and its descendants."""
    below = (
        select(_PATTERNS.id)
        .where(_PATTERNS.tenant == tenant_id, _PATTERNS.id == pattern)
        .cte("below", recursive=True)
    )
    parts = select(_PATTERNS.id).where(
        _PATTERNS.tenant == tenant_id, _PATTERNS.merged_into == below.c.id
    )
    return set(connection.scalars(select(below.union(parts).c.id)))


def _ensure_pattern(connection: Connection, ref: TenantRef, pattern: UUID, result: UUID) -> None:
    """Create the pattern `result` with the problem of `pattern`; do nothing if `result` exists."""
    of_tenant = _PATTERNS.tenant == ref.id
    problem = connection.scalar(
        select(_PATTERNS.problem_id).where(of_tenant, _PATTERNS.id == pattern)
    )
    known = select(_PATTERNS.id).where(of_tenant, _PATTERNS.id == result)
    if connection.scalar(known) is None:
        connection.execute(
            insert(experience_patterns).values(
                tenant=ref.id, id=result, problem_id=problem or result
            )
        )


def _set_parent(connection: Connection, ref: TenantRef, pattern: UUID, into: UUID | None) -> None:
    connection.execute(
        update(experience_patterns)
        .where(_PATTERNS.tenant == ref.id, _PATTERNS.id == pattern)
        .values(merged_into=into)
    )


def _end_merges(
    connection: Connection, ref: TenantRef, entries: Sequence[UUID], pattern: UUID, by: str
) -> None:
    connection.execute(
        update(experience_merges)
        .where(
            _MERGES.tenant == ref.id,
            _MERGES.entry_id.in_(entries),
            _MERGES.pattern_id == pattern,
            _MERGES.split_at.is_(None),
        )
        .values(split_at=func.now(), split_by=by)
    )


class StagedEntries:
    """Counts and deletes entries for the core; see StagedRows."""

    def count(self, connection: Connection, tenant_id: str) -> int:
        """Return the number of a tenant's entries, with or without a checkpoint."""
        query = select(func.count()).where(knowledge_staging.c.tenant == tenant_id)
        return connection.scalar(query) or 0

    def delete_expired(
        self,
        connection: Connection,
        ref: TenantRef,
        cutoffs: Cutoffs,
        kept_sources: Collection[str],
    ) -> int:
        """Delete entries that were embedded before their cutoff; return their number.

        Entries that a hold covers are kept.
        """
        staged, source = knowledge_staging.c, select_source(knowledge_staging)
        return connection.execute(
            delete(knowledge_staging).where(
                staged.tenant == ref.id,
                staged.embedded_at < cutoffs.select_cutoff(staged.entry_type),
                ~is_row_held(knowledge_staging),
                or_(source.is_(None), source.not_in(kept_sources)),
            )
        ).rowcount


STAGED_ROWS = StagedEntries()


def delete_merges(connection: Connection, ref: TenantRef, entries: Sequence[UUID]) -> None:
    """Delete the recorded merges in which these retracted entries took part."""
    merges = experience_merges.c
    connection.execute(
        delete(experience_merges).where(
            merges.tenant == ref.id, merges.entry_id.in_(entries) | merges.other_id.in_(entries)
        )
    )


def delete_empty_patterns(connection: Connection, ref: TenantRef) -> None:
    """Delete patterns without entries, and the feedback on them.

    A merged pattern is deleted only with its root, because the root counts its feedback.
    """
    staged, pattern, feedback_columns = (
        knowledge_staging.c,
        experience_patterns.c,
        experience_feedback.c,
    )
    has_entry = (
        select(staged.id)
        .where(staged.tenant == pattern.tenant, staged.pattern_id == pattern.id)
        .exists()
    )
    empty = (
        select(pattern.id)
        .where(pattern.tenant == ref.id, ~has_entry, pattern.merged_into.is_(None))
        .cte("empty", recursive=True)
    )
    parts = select(pattern.id).where(pattern.tenant == ref.id, pattern.merged_into == empty.c.id)
    ids = list(connection.scalars(select(empty.union(parts).c.id)))
    if not ids:
        return
    connection.execute(
        delete(experience_feedback).where(
            feedback_columns.tenant == ref.id, feedback_columns.pattern_id.in_(ids)
        )
    )
    connection.execute(
        delete(experience_patterns).where(pattern.tenant == ref.id, pattern.id.in_(ids))
    )


def delete_questions(connection: Connection, ref: TenantRef, before: datetime) -> None:
    """Delete questions without feedback that were asked before a time.

    If a hold covers all documents of the tenant, no question is deleted.
    """
    question_columns, feedback_columns = experience_questions.c, experience_feedback.c
    has_feedback = (
        select(feedback_columns.query_id)
        .where(
            feedback_columns.tenant == question_columns.tenant,
            feedback_columns.query_id == question_columns.id,
        )
        .exists()
    )
    connection.execute(
        delete(experience_questions).where(
            question_columns.tenant == ref.id,
            question_columns.asked_at < before,
            ~has_feedback,
            ~is_row_held(experience_questions),
        )
    )
