"""Feedback: whether a pattern helped who asked, once per question and pattern."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.dialects.postgresql import insert as upsert

from rag_assets.api.experience_responses import FeedbackCounts
from rag_assets.storage.catalog.database import Database, TenantRef
from rag_assets.systems.experience.errors import UnknownExperience
from rag_assets.systems.experience.merges import living_roots
from rag_assets.systems.experience.model import FeedbackDraft
from rag_assets.systems.experience.patterns import counts_of
from rag_assets.systems.experience.tables import (
    experience_feedback,
    experience_questions,
)


def give_feedback(
    database: Database,
    ref: TenantRef,
    draft: FeedbackDraft,
    *,
    cutoff: datetime | None,
    by: str | None,
) -> FeedbackCounts:
    """Record whether a pattern helped; the last word on an answer counts.

    Args:
        database: holds questions and feedback.
        ref: the tenant.
        draft: what is said.
        cutoff: see cutoff_of.
        by: the name of the caller's token.

    Raises:
        UnknownExperience: no such question was answered, or not with this pattern.
    """
    asked = experience_questions.c
    question = select(asked.patterns).where(asked.tenant == ref.id, asked.id == draft.query_id)
    values = {"outcome": draft.outcome, "given_by": by, "given_at": func.now()}
    statement = (
        upsert(experience_feedback)
        .values(tenant=ref.id, query_id=draft.query_id, pattern_id=draft.pattern_id, **values)
        .on_conflict_do_update(index_elements=["tenant", "query_id", "pattern_id"], set_=values)
    )
    with database.begin_for(ref) as connection:
        answered = connection.scalar(question)
        if answered is None:
            raise UnknownExperience(
                "query_id: no such question was answered", hint="use the query_id of an answer"
            )
        if str(draft.pattern_id) not in answered:
            raise UnknownExperience(
                "pattern_id: the question was not answered with this pattern",
                hint="name a pattern of that answer",
            )
        into = living_roots(connection, ref.id, [draft.pattern_id]).get(draft.pattern_id)
        counts = {} if into is None else counts_of(connection, ref.id, [into], cutoff)
        if into is None or into not in counts:
            raise UnknownExperience(
                "pattern_id: the pattern is gone", hint="it was taken back, or has expired"
            )
        connection.execute(statement)
        now = counts_of(connection, ref.id, [into], cutoff)[into]
    return FeedbackCounts(into, now.contributions + now.helped, now.did_not_help)
