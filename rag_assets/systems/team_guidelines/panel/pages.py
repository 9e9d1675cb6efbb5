"""The table of all pages by path, and two short pages: trying a task, and usage."""

from __future__ import annotations

import csv
import io
from functools import partial

from pydantic import ValidationError
from starlette.responses import Response

from rag_assets.api.guideline_responses import GuidelinesContext
from rag_assets.panel.frame import PanelPage, SystemPanel, Visit
from rag_assets.panel.thresholds import THRESHOLD_PAGES
from rag_assets.search.model import MAX_QUERY, Caller
from rag_assets.systems.team_guidelines.contexts import MAX_TOKENS, ContextRequest, Contexts
from rag_assets.systems.team_guidelines.panel import documents, models, plain_text
from rag_assets.systems.team_guidelines.panel.room import open_room

_DOCUMENT = "/documents/{document:str}"
_DAYS = 30
_CHOICES = (7, 30, 90)
_FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")


async def show_try_form(visit: Visit) -> Response:
    """Show the form for a task."""
    return _render_try_page(visit, "try.html")


async def try_task(visit: Visit) -> Response:
    """Show the section that a prompt with this task would get, and the reason."""
    room = await open_room(visit)
    task = visit.field("task")
    template = "try_result.html" if "hx-request" in visit.request.headers else "try.html"
    try:
        request = ContextRequest(task=task, explain=True)
    except ValidationError:
        problem = f"Describe a task, in {MAX_QUERY:,} characters at most."
        return _render_try_page(visit, template, task=task, problem=problem)
    backend = visit.backend
    contexts = Contexts(
        backend.catalog, backend.retriever, backend.reader, run_blocking=backend.run
    )
    caller = Caller(principals=visit.session.principals, name=visit.session.name)
    context = await contexts.build(room.project.record, request, caller)
    return _render_try_page(visit, template, task=task, context=context)


def _render_try_page(
    visit: Visit,
    template: str,
    *,
    task: str = "",
    problem: str = "",
    context: GuidelinesContext | None = None,
) -> Response:
    return visit.html(
        template,
        task=task,
        context=context,
        why="" if context is None else context.detail or "",
        problem=problem,
        most=MAX_TOKENS,
        per_page=documents.PASSAGES_PER_PAGE,
    )


async def show_usage(visit: Visit) -> Response:
    """Show the usage of the month and of each day, and the caps."""
    room = await open_room(visit)
    days = _parse_days(visit)
    report = await room.read(partial(room.guidelines.usage.report, room.project, days))
    return visit.html("usage.html", usage=report, days=days, choices=_CHOICES)


async def export_usage(visit: Visit) -> Response:
    """Send the usage of each day as CSV."""
    room = await open_room(visit)
    report = await room.read(
        partial(room.guidelines.usage.report, room.project, _parse_days(visit))
    )
    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(
        ("day", "provider", "model", "requests", "texts", "tokens", "output_tokens", "cost_usd")
    )
    for day in report.days:
        used = day.used
        rows.writerow(
            (
                *(day.day.isoformat(), _escape_formula(day.provider), _escape_formula(day.model)),
                *(used.requests, used.texts, used.tokens, used.output_tokens, f"{used.cost:.8f}"),
            )
        )
    name = f"usage-{report.since.isoformat()}.csv"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text.getvalue(), headers=headers, media_type="text/csv; charset=utf-8")


def _parse_days(visit: Visit) -> int:
    text = visit.request.query_params.get("days", "")
    return next((days for days in _CHOICES if str(days) == text), _DAYS)


def _escape_formula(name: str) -> str:
    """Return a name that a spreadsheet does not evaluate."""
    return f"'{name}" if name.startswith(_FORMULA_SIGNS) else name


PANEL = SystemPanel(
    name="team-guidelines",
    path="guidelines",
    package="rag_assets.systems.team_guidelines.panel",
    tabs={"": "Guidelines", "/try": "Try it", "/models": "Models", "/usage": "Usage"},
    pages=(
        PanelPage("", documents.show_overview),
        PanelPage("/list", documents.show_list),
        PanelPage("/watch", documents.watch, is_use=False),
        PanelPage("/same", documents.find_same_name),
        PanelPage("/delete", documents.delete, "POST"),
        PanelPage("/upload", documents.upload, "POST", streamed=True),
        PanelPage(
            "/text", plain_text.save, "POST", most_bytes=plain_text.MAX_FORM_BYTES, texts=("text",)
        ),
        PanelPage(
            "/text/tokens", plain_text.count_tokens, "POST", most_bytes=plain_text.MAX_FORM_BYTES
        ),
        PanelPage(_DOCUMENT, documents.show_document),
        PanelPage(f"{_DOCUMENT}/file", documents.download),
        PanelPage(f"{_DOCUMENT}/retry", documents.retry, "POST"),
        PanelPage(f"{_DOCUMENT}/enabled", documents.set_enabled, "POST"),
        PanelPage("/try", show_try_form),
        PanelPage("/try", try_task, "POST", texts=("task",)),
        *THRESHOLD_PAGES,
        PanelPage("/models", models.show),
        PanelPage("/models/progress", models.show_progress, is_use=False),
        PanelPage("/models/keys", models.set_key, "POST", is_sensitive=True),
        PanelPage("/models/keys/test", models.test_key, "POST"),
        PanelPage("/models/keys/delete", models.delete_key, "POST", is_sensitive=True),
        PanelPage("/models/provider", models.change_provider, "POST"),
        PanelPage("/usage", show_usage),
        PanelPage("/usage.csv", export_usage),
    ),
)
