"""The report for admins: what there is, what was asked, what helped, and what expires next."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, func, select

from rag_assets.api.experience_responses import Report
from rag_assets.systems.experience.patterns import is_living
from rag_assets.systems.experience.tables import (
    checkpoints,
    experience_feedback,
    experience_merges,
    experience_questions,
    knowledge_staging,
)

_SOON = timedelta(days=30)
_STAGED = knowledge_staging.c
_MERGES = experience_merges.c


def report_of(
    connection: Connection, tenant_id: str, cutoff: datetime | None, days: int | None
) -> Report:
    """What a tenant's experience holds.

    Args:
        connection: reads all of it at one moment.
        tenant_id: the tenant.
        cutoff: see cutoff_of.
        days: that entries are kept; None: for good.
    """
    living = (_STAGED.tenant == tenant_id, is_living(cutoff))
    by_type = select(_STAGED.entry_type, func.count()).where(*living).group_by(_STAGED.entry_type)
    entries: dict[str, int] = dict(connection.execute(by_type).all())
    oldest = connection.scalar(select(func.min(_STAGED.embedded_at)).where(*living))
    soon = None if cutoff is None else cutoff + _SOON
    expiring = 0
    if soon is not None:
        expiring = (
            connection.scalar(select(func.count()).where(*living, _STAGED.embedded_at < soon)) or 0
        )
    merges = select(_MERGES.way, func.count()).where(
        _MERGES.tenant == tenant_id, _MERGES.split_at.is_(None)
    )
    asked = experience_questions.c
    questions = select(asked.use, func.count()).where(asked.tenant == tenant_id)
    said = experience_feedback.c
    outcomes = select(said.outcome, func.count()).where(said.tenant == tenant_id)
    told: dict[str, int] = dict(connection.execute(outcomes.group_by(said.outcome)).all())
    shown = select(func.jsonb_array_elements_text(asked.patterns)).where(asked.tenant == tenant_id)
    answered = set(connection.scalars(shown))
    patterns = {
        str(id_) for id_ in connection.scalars(select(_STAGED.pattern_id).distinct().where(*living))
    }

    def count(*conditions: Any) -> int:
        query = select(func.count()).select_from(knowledge_staging)
        return connection.scalar(query.where(_STAGED.tenant == tenant_id, *conditions)) or 0

    return Report(
        patterns=len(patterns),
        entries=entries,
        staged=count(_STAGED.checkpoint_id.is_(None)),
        failed=count(_STAGED.failure.is_not(None)),
        merges=dict(connection.execute(merges.group_by(_MERGES.way)).all()),
        splits=connection.scalar(
            select(func.count()).where(_MERGES.tenant == tenant_id, _MERGES.split_at.is_not(None))
        )
        or 0,
        questions=dict(connection.execute(questions.group_by(asked.use)).all()),
        helped=told.get("helped", 0),
        did_not_help=told.get("did_not_help", 0),
        never_shown=len(patterns - answered),
        open_checkpoints=connection.scalar(
            select(func.count())
            .select_from(checkpoints)
            .where(checkpoints.c.tenant == tenant_id, checkpoints.c.state != "done")
        )
        or 0,
        expires_within_30_days=expiring,
        next_expiry=None if oldest is None or days is None else oldest + timedelta(days=days),
    )
