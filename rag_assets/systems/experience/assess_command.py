"""`rag-assets experience assess`: what the tenant's chat model thinks of its experience."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from uuid import UUID

from rag_assets.api.experience_responses import Pattern
from rag_assets.billing.chat_models import ChatModels
from rag_assets.cli.commands.output import print_json, print_table, say, warn
from rag_assets.cli.commands.session import Session, with_reading_session
from rag_assets.common.errors import InvalidRequest
from rag_assets.privacy.masker import masker_of
from rag_assets.retrieval import AsyncRetriever
from rag_assets.retrieval.model import Caller
from rag_assets.storage.catalog.tenants import TenantRecord
from rag_assets.systems.experience.assessment import Assessment, Assessor
from rag_assets.systems.experience.questions import Questions
from rag_assets.systems.experience.service import Experience

_LOW = 2
_SHOWN_CHARACTERS = 80


@with_reading_session
def assess(
    session: Session, tenant: str, *, patterns: int, after: str | None, as_json: bool
) -> None:
    """Have patterns graded, and print the grades."""
    experience = Experience(session.catalog, masker_of(session.settings.local))
    record = experience.record(tenant)
    chosen = experience.administration.page(record, after=_id(after), limit=patterns)
    if not chosen:
        say("There is no pattern to assess.")
        return
    found = asyncio.run(_assessed(session, record, chosen))
    if as_json:
        print_json({**asdict(found), "means": found.means, "next": str(chosen[-1].id)})
    else:
        _print(found, {str(one.id): one for one in chosen})
    if found.stopped is not None:
        warn(f"the assessment stopped after {found.assessed} patterns: {found.stopped}")


async def _assessed(session: Session, record: TenantRecord, patterns: list[Pattern]) -> Assessment:
    chat_models = ChatModels(session.catalog, session.settings)
    retriever = AsyncRetriever(session.catalog, session.store, session.embedders)
    try:
        questions = Questions(session.catalog, retriever, recorded=False)
        assessor = Assessor(await chat_models.of(record), questions)
        return await assessor.assess(record, patterns, Caller())
    finally:
        await chat_models.close()
        await retriever.close()


def _print(found: Assessment, patterns: dict[str, Pattern]) -> None:
    print_table(
        ["aspect", "mean grade", "graded"],
        [
            (
                aspect,
                "-" if mean is None else f"{mean:.2f} of 5",
                sum(one.aspect == aspect and one.grade is not None for one in found.grades),
            )
            for aspect, mean in found.means.items()
        ],
    )
    low = [one for one in found.grades if one.grade is not None and one.grade <= _LOW]
    for one in low:
        problem = patterns[one.pattern].problem if one.pattern in patterns else ""
        say(f"{one.aspect} {one.grade}: {one.pattern} {problem[:_SHOWN_CHARACTERS]}")
        say(f"   {one.reason}")
    say(f"{found.assessed} patterns by {found.model}; these are its opinions.")


def _id(text: str | None) -> UUID | None:
    try:
        return None if text is None else UUID(text)
    except ValueError:
        raise InvalidRequest(f"{text!r} is no UUID", hint="give an id as it is listed") from None
