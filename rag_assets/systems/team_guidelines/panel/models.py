"""Panel pages for models, keys and usage, and for trying out a task."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pydantic import SecretStr, ValidationError
from starlette.responses import Response

from rag_assets.api.guideline_responses import GuidelinesContext
from rag_assets.common.errors import InvalidRequest, RagAssetsError
from rag_assets.common.formatting import duration
from rag_assets.models.providers.registry import WITH_KEYS, list_auto_embeddings
from rag_assets.panel.frame import Visit
from rag_assets.search.model import MAX_QUERY
from rag_assets.storage.catalog.builds.generations import Generation
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.systems.team_guidelines.contexts import MAX_TOKENS, ContextRequest, Contexts
from rag_assets.systems.team_guidelines.panel.documents import (
    PASSAGES_PER_PAGE,
    ProjectServices,
    open_services,
)
from rag_assets.systems.team_guidelines.projects import OpenProject, ProjectScope
from rag_assets.tenants.projects import Project, ProjectSettings, build_project_config

_BUILDING = frozenset({"BUILDING", "COMPLETE"})
_NAMES = {"openai": "OpenAI", "gemini": "Google Gemini", "anthropic": "Anthropic"}
_MESSAGES = {
    "set": "The key is stored. Test it to check that it works.",
    "worked": "The key works.",
    "deleted": "The key is deleted.",
    "changed": "The provider is changed. The current index answers until the new one is complete.",
}
"""The message after an action, by value of the query parameter `done`."""


@dataclass(frozen=True, slots=True)
class ProviderChange:
    """Preview of a change of provider.

    Attributes:
        is_same: whether the embedder stays the same, so that no document is embedded again.
        documents, passages, tokens: how many of each must be embedded again.
        seconds: estimated duration; None if the new embedder was never used in this project.
        lacks_key: whether the new provider still needs a key.
    """

    provider: str
    embedder: str
    is_same: bool
    documents: int
    passages: int
    tokens: int
    cost: float | None
    seconds: float | None
    lacks_key: bool


@dataclass(frozen=True, slots=True)
class PendingBuild:
    """A build that will replace the serving build.

    Attributes:
        former: embedder of the serving build, which answers meanwhile.
        is_started: whether the build exists; otherwise the next run of the pipeline starts it.
        documents, of_documents: number of documents in the build, and in total.
    """

    embedder: str
    former: str | None
    is_started: bool
    documents: int
    of_documents: int


def preview_provider(catalog: Catalog, project: OpenProject, provider: str) -> ProviderChange:
    """Return how many documents a change of provider would embed again, and the cost.

    Raises:
        InvalidRequest: the project cannot use that provider.
    """
    record = project.record
    named_project = Project(record.config["profile"], project.organization_id, project.project_id)
    settings = ProjectSettings.model_validate({"provider": provider})
    config = build_project_config(
        named_project, record.id, settings, initial_config={}, present=record.config
    )
    changed = OpenProject(replace(record, config=config), project.embedders)
    states = [state for state in catalog.upload_states.page(record.id) if state.answers]
    passages = sum(state.chunk_count for state in states)
    tokens = sum(state.token_count or 0 for state in states)
    rate = _measure_texts_per_second(catalog.generations.live(record.id), changed.embedder_id)
    return ProviderChange(
        provider=provider,
        embedder=changed.embedder_id,
        is_same=changed.embedder_id == project.embedder_id,
        documents=len(states),
        passages=passages,
        tokens=tokens,
        cost=None if changed.price is None else changed.price.compute_cost(tokens),
        seconds=None if rate is None else passages / rate,
        lacks_key=changed.choice.key == "missing",
    )


def find_pending_build(catalog: Catalog, project: OpenProject) -> PendingBuild | None:
    """Return the build that will replace the serving build; None if none will.

    The build may be in progress or not yet started.
    """
    builds = catalog.generations.live(project.record.id)
    serving = next((build for build in builds if build.state == "SERVING"), None)
    if serving is None:
        return None
    building = [build for build in builds if build.state in _BUILDING]
    if not building:
        if serving.embedder_id == project.embedder_id or project.choice.key == "missing":
            return None
        waiting = sum(state.answers for state in catalog.upload_states.page(project.record.id))
        return PendingBuild(project.embedder_id, serving.embedder_id, False, 0, waiting)
    newest = building[-1]
    progress = catalog.build_progress.read(project.record.id, {newest.number: None})[newest.number]
    return PendingBuild(
        newest.embedder_id, serving.embedder_id, True, progress.documents, progress.of_documents
    )


def _measure_texts_per_second(builds: list[Generation], embedder_id: str) -> float | None:
    rates = [build.pace.texts_per_second for build in builds if build.embedder_id == embedder_id]
    known = [rate for rate in rates if rate]
    return known[-1] if known else None


async def show(visit: Visit) -> Response:
    """Show the project's models and keys, and any change of provider in progress."""
    services = await open_services(visit)
    done = _MESSAGES.get(visit.request.query_params.get("done", ""), "")
    return await _render_page(services, done=done)


async def show_progress(visit: Visit) -> Response:
    """Return the HTML of the pending build's progress, which the script puts into the page."""
    services = await open_services(visit)
    build = await visit.read(partial(find_pending_build, visit.backend.catalog, services.project))
    return visit.html("replacement.html", build=build)


async def set_key(visit: Visit) -> Response:
    """Set the project's own key of a provider."""
    services = await open_services(visit)
    key = SecretStr(visit.field("key").strip())
    keys = services.guidelines.keys
    try:
        await visit.write(partial(keys.put, services.project.ref, visit.field("provider"), key))
    except RagAssetsError as error:
        return await _render_page(services, problem=error.advice, status=422)
    return visit.redirect("/models?done=set")


async def test_key(visit: Visit) -> Response:
    """Test a provider's key by one small call, and show whether it works."""
    services = await open_services(visit)
    provider = visit.field("provider")
    try:
        tested = await visit.read(
            partial(services.guidelines.keys.test, services.project.ref, provider)
        )
    except RagAssetsError as error:
        return await _render_page(services, problem=error.advice, status=422)
    if not tested.worked:
        return await _render_page(services, problem=f"The key does not work: {tested.reason}")
    return await _render_page(
        services, done=f"The key works: answered in {tested.latency_ms:,} ms."
    )


async def delete_key(visit: Visit) -> Response:
    """Delete the project's own key of a provider, after a confirmation."""
    services = await open_services(visit)
    provider = visit.field("provider")
    if not visit.field("confirmed"):
        return visit.html("delete_key.html", provider=provider, name=_format_provider(provider))
    try:
        await visit.write(partial(services.guidelines.keys.delete, services.project.ref, provider))
    except RagAssetsError as error:
        return await _render_page(services, problem=error.advice, status=422)
    return visit.redirect("/models?done=deleted")


async def change_provider(visit: Visit) -> Response:
    """Change the provider of embeddings after a confirmation of the cost."""
    services = await open_services(visit)
    provider = visit.field("provider")
    try:
        if provider not in _list_selectable_providers():
            raise InvalidRequest(
                "the provider cannot be used for embeddings", hint="choose a provider of the list"
            )
        change = await visit.read(
            partial(preview_provider, visit.backend.catalog, services.project, provider)
        )
        if not visit.field("confirmed"):
            return await _render_page(services, change=change)
        scope = ProjectScope(tenants=frozenset({visit.tenant_id}))
        put = partial(services.guidelines.projects.put, scope, services.project.project_id)
        await visit.write(partial(put, {"provider": provider}))
    except RagAssetsError as error:
        return await _render_page(services, problem=error.advice, status=422)
    return visit.redirect("/models?done=changed")


def _list_selectable_providers() -> tuple[str, ...]:
    """Return the providers that admins can select; only operators can select the local model."""
    return ("auto", *list_auto_embeddings())


async def _render_page(
    services: ProjectServices,
    *,
    done: str = "",
    problem: str = "",
    change: ProviderChange | None = None,
    status: int = 200,
) -> Response:
    def read() -> dict[str, Any]:
        key = services.guidelines.keys.get_state(services.project)
        return {
            "key": key,
            "project": services.guidelines.projects.show(services.project, key),
            "keys": services.guidelines.keys.list_for_project(services.project).keys,
            "build": find_pending_build(services.visit.backend.catalog, services.project),
        }

    return services.visit.html(
        "models.html",
        status,
        **await services.visit.read(read),
        done=done,
        problem=problem,
        change=change,
        providers=WITH_KEYS,
        choices=_list_selectable_providers(),
        provider_name=_format_provider,
        duration=duration,
    )


def _format_provider(provider: str) -> str:
    return _NAMES.get(provider, provider)


_DAYS = 30
_CHOICES = (7, 30, 90)
_FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")


async def show_try_form(visit: Visit) -> Response:
    """Show the form in which an admin enters a task to try."""
    return _render_try_page(visit, "try.html")


async def try_task(visit: Visit) -> Response:
    """Show the section that a prompt for this task would get, and the scores."""
    services = await open_services(visit)
    task = visit.field("task")
    template = "try_result.html" if "hx-request" in visit.request.headers else "try.html"
    try:
        request = ContextRequest(task=task, explain=True)
    except ValidationError:
        problem = f"Describe the task in at most {MAX_QUERY:,} characters."
        return _render_try_page(visit, template, task=task, problem=problem)
    backend = visit.backend
    contexts = Contexts(
        backend.catalog, backend.retriever, backend.reader, run_blocking=backend.run
    )
    context = await contexts.build(services.project.record, request, visit.caller)
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
        per_page=PASSAGES_PER_PAGE,
    )


async def show_usage(visit: Visit) -> Response:
    """Show the usage of the month and of each day, and the caps."""
    services = await open_services(visit)
    days = _parse_days(visit)
    report = await visit.read(partial(services.guidelines.usage.report, services.project, days))
    return visit.html("usage.html", usage=report, days=days, choices=_CHOICES)


async def export_usage(visit: Visit) -> Response:
    """Send the usage of each day as CSV."""
    services = await open_services(visit)
    report = await visit.read(
        partial(services.guidelines.usage.report, services.project, _parse_days(visit))
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
    """Escape a name that a spreadsheet would evaluate as a formula."""
    return f"'{name}" if name.startswith(_FORMULA_SIGNS) else name
