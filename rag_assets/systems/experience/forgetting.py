"""Deletes expired entries, and the merges, patterns and questions that nothing refers to."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import Connection, delete, func, or_, select

from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.erasure.holds import is_row_held, select_source
from rag_assets.storage.catalog.erasure.retention import Cutoffs
from rag_assets.systems.experience.tables import (
    experience_feedback,
    experience_merges,
    experience_patterns,
    experience_questions,
    knowledge_staging,
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
        """Delete entries that were embedded before their cutoff, unless a hold covers them."""
        staged, source = knowledge_staging.c, select_source(knowledge_staging)
        return connection.execute(
            delete(knowledge_staging).where(
                staged.tenant == ref.id,
                staged.embedded_at < cutoffs.select_for(staged.entry_type),
                ~is_row_held(knowledge_staging),
                or_(source.is_(None), source.not_in(kept_sources)),
            )
        ).rowcount


STAGED_ROWS = StagedEntries()


def delete_merges(connection: Connection, ref: TenantRef, entries: Sequence[UUID]) -> None:
    """Delete the merges of deleted entries."""
    merges = experience_merges.c
    connection.execute(
        delete(experience_merges).where(
            merges.tenant == ref.id, merges.entry_id.in_(entries) | merges.other_id.in_(entries)
        )
    )


def delete_empty_patterns(connection: Connection, ref: TenantRef) -> None:
    """Delete patterns without entries, and the feedback on them.

    A merged pattern is kept as long as the pattern that it was merged into, because its feedback
    is counted there.
    """
    staged, pattern, said = knowledge_staging.c, experience_patterns.c, experience_feedback.c
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
        delete(experience_feedback).where(said.tenant == ref.id, said.pattern_id.in_(ids))
    )
    connection.execute(
        delete(experience_patterns).where(pattern.tenant == ref.id, pattern.id.in_(ids))
    )


def delete_questions(connection: Connection, ref: TenantRef, before: datetime) -> None:
    """Delete questions without feedback that were asked before a time.

    If a hold covers all documents of the tenant, no question is deleted.
    """
    asked, said = experience_questions.c, experience_feedback.c
    has_feedback = (
        select(said.query_id).where(said.tenant == asked.tenant, said.query_id == asked.id).exists()
    )
    connection.execute(
        delete(experience_questions).where(
            asked.tenant == ref.id,
            asked.asked_at < before,
            ~has_feedback,
            ~is_row_held(experience_questions),
        )
    )
