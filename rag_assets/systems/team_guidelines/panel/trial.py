"""Try it: what a prompt would get for a task, and why."""

from __future__ import annotations

from pydantic import ValidationError
from starlette.responses import Response

from rag_assets.panel.frame import Visit
from rag_assets.retrieval.model import MAX_QUERY, Caller
from rag_assets.systems.team_guidelines.contexts import (
    MAX_TOKENS,
    ContextRequest,
    Contexts,
)
from rag_assets.systems.team_guidelines.panel.document_pages import PASSAGES
from rag_assets.systems.team_guidelines.panel.room import room_of


async def form(visit: Visit) -> Response:
    """The form."""
    return visit.html(
        "try.html", task="", context=None, problem="", most=MAX_TOKENS, per_page=PASSAGES
    )


async def attempt(visit: Visit) -> Response:
    """The section that a prompt with this task would get."""
    room = await room_of(visit)
    task = visit.field("task")
    template = "try_result.html" if "hx-request" in visit.request.headers else "try.html"
    try:
        wanted = ContextRequest(task=task, explain=True)
    except ValidationError:
        problem = f"Describe a task, in {MAX_QUERY:,} characters at most."
        return visit.html(
            template, task=task, context=None, problem=problem, most=MAX_TOKENS, per_page=PASSAGES
        )
    backend = visit.backend
    contexts = Contexts(
        backend.catalog, backend.retriever, backend.reader, run_blocking=backend.run
    )
    caller = Caller(principals=visit.session.principals, name=visit.session.name)
    found = await contexts.of(room.project.record, wanted, caller)
    return visit.html(
        template,
        task=task,
        context=found,
        why=found.detail or "",
        problem="",
        most=MAX_TOKENS,
        per_page=PASSAGES,
    )
