"""Panel of experience: patterns with their entries, checkpoints, and a trial of questions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar
from urllib.parse import urlencode
from uuid import UUID

from pydantic import ValidationError
from starlette.responses import Response

from rag_assets.api.experience_responses import Answer
from rag_assets.common.errors import InvalidRequest
from rag_assets.common.invalid_values import describe_first_problem
from rag_assets.panel.frame import PanelPage, SystemPanel, Visit
from rag_assets.panel.thresholds import THRESHOLD_PAGES
from rag_assets.search.model import Caller
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.systems.experience.errors import ProblemsDiffer
from rag_assets.systems.experience.model import (
    ContextQuestion,
    FailureQuestion,
    PatternFilter,
    TaskQuestion,
    validate_fields,
)
from rag_assets.systems.experience.patterns import MAX_CHOICES
from rag_assets.systems.experience.questions import Questions
from rag_assets.systems.experience.ranking import build_block
from rag_assets.systems.experience.service import Experience

_PAGE = 50
_ENTRIES = 20
_MERGES = 50
_CONFLICT = 409
_NUMBER = re.compile(r"[0-9]{1,9}")
_FILTERS = ("order", "search", "entry_type", "agent_type", "task_type", "technology", "project_id")
_TRIAL_FIELDS = ("use", "description", "error_message", "agent_type", "task_type", "technology")
_BLOCK_TOKENS: int = ContextQuestion.model_fields["token_budget"].default
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class ExperienceServices:
    """The session's tenant, and the services for its pages.

    Attributes:
        record: current record of the tenant.
    """

    visit: Visit
    record: TenantRecord
    experience: Experience

    async def read(self, work: Callable[[], _T]) -> _T:
        """Run blocking work; see Backend.run."""
        return await self.visit.backend.run(self.record.id, self.visit.session.name, work)

    async def write(self, work: Callable[[], _T]) -> _T:
        """Run work that changes the tenant; see Backend.write."""
        return await self.visit.backend.write(self.record.id, work)


async def open_services(visit: Visit) -> ExperienceServices:
    """Open the session's tenant.

    Raises:
        UnknownTenant: the tenant was removed.
        NoExperience: the tenant has another profile now.
    """
    backend = visit.backend
    experience = Experience(backend.catalog, backend.retriever.masker)
    record = await backend.run(
        visit.tenant_id, visit.session.name, partial(experience.get_record, visit.tenant_id)
    )
    return ExperienceServices(visit, record, experience)


async def show_patterns(visit: Visit) -> Response:
    """Show the patterns that match a filter, most used first, and the report on the tenant.

    If the parameter `merging` is the id of a pattern, each listed pattern is offered as the target
    of its merge.
    """
    services = await open_services(visit)
    administration, record = services.experience.administration, services.record
    parameters = visit.request.query_params
    given = {name: value for name in _FILTERS if (value := parameters.get(name, "").strip())}
    wanted = validate_fields(PatternFilter, {"order": "use"} | given, hint="correct that field")
    after = _parse_id(parameters["after"]) if parameters.get("after") else None
    merging = None
    if parameters.get("merging"):
        details = partial(administration.read_details, record, _parse_id(parameters["merging"]))
        merging = (await services.read(details)).pattern
        given["merging"] = str(merging.id)
    projects = await services.read(
        partial(services.experience.checkpoints.list_projects, record.id)
    )
    page = partial(
        administration.list_patterns, record, after=after, limit=_PAGE + 1, pattern_filter=wanted
    )
    found = await services.read(page)
    last = found[_PAGE - 1].id if len(found) > _PAGE else None
    return visit.html(
        "patterns.html",
        patterns=[item for item in found[:_PAGE] if merging is None or item.id != merging.id],
        following=None if last is None else urlencode(given | {"after": str(last)}),
        wanted=wanted,
        is_filtered=bool(given.keys() - {"order", "merging"}),
        is_narrowed=bool(given.keys() - {"order", "merging", "search"}),
        choices=await services.read(partial(administration.list_filter_values, record)),
        projects={project.id: project.name for project in projects[:MAX_CHOICES]},
        report=await services.read(partial(administration.build_report, record)),
        merging=merging,
    )


async def show_pattern(visit: Visit) -> Response:
    """Show a pattern with its entries and merges."""
    services = await open_services(visit)
    id_ = _parse_id(visit.request.path_params["pattern"])
    details = await services.read(
        partial(services.experience.administration.read_details, services.record, id_)
    )
    projects = await services.read(
        partial(services.experience.checkpoints.list_projects, services.record.id)
    )
    first = visit.request.query_params.get("first", "")
    start = int(first) if _NUMBER.fullmatch(first) else 0
    return visit.html(
        "pattern.html",
        details=details,
        start=start,
        entries=details.entries[start : start + _ENTRIES],
        following=start + _ENTRIES if start + _ENTRIES < len(details.entries) else None,
        merges=details.merges[::-1][:_MERGES],
        mergeable={entry.id for entry in details.entries} if len(details.entries) > 1 else set(),
        projects={project.id: project.name for project in projects},
    )


async def show_checkpoints(visit: Visit) -> Response:
    """Show the latest checkpoints, and the number of staged entries."""
    services = await open_services(visit)
    found = await services.read(
        partial(services.experience.checkpoints.list_latest, services.record.id, _PAGE)
    )
    projects = await services.read(
        partial(services.experience.checkpoints.list_projects, services.record.id)
    )
    report = await services.read(
        partial(services.experience.administration.build_report, services.record)
    )
    names = {project.id: project.name for project in projects}
    return visit.html("checkpoints.html", checkpoints=found, projects=names, report=report)


async def split_entry(visit: Visit) -> Response:
    """Move an entry out of its pattern, and show its new pattern."""
    services = await open_services(visit)
    apart = await services.write(
        partial(
            services.experience.administration.split,
            services.record,
            _parse_id(visit.request.path_params["pattern"]),
            _parse_id(visit.field("entry")),
            by=visit.session.name,
        )
    )
    return visit.redirect(f"/patterns/{apart.id}")


async def merge_pattern(visit: Visit) -> Response:
    """Merge a pattern into another; ask for confirmation first if their problems differ."""
    services = await open_services(visit)
    administration, record = services.experience.administration, services.record
    ids = _parse_id(visit.request.path_params["pattern"]), _parse_id(visit.field("into").strip())
    is_confirmed = visit.field("confirmed") == "yes"
    try:
        made = await services.write(
            partial(
                administration.merge, record, *ids, by=visit.session.name, confirmed=is_confirmed
            )
        )
    except ProblemsDiffer:
        both = [
            await services.read(partial(administration.read_details, record, id_)) for id_ in ids
        ]
        return visit.html("merge.html", _CONFLICT, both=both)
    return visit.redirect(f"/patterns/{made.pattern.id}")


async def show_trial(visit: Visit) -> Response:
    """Show the empty form in which an admin enters a task or a failure to try."""
    return await _render_trial(
        await open_services(visit), dict.fromkeys(_TRIAL_FIELDS, "") | {"use": "failure"}
    )


async def run_trial(visit: Visit) -> Response:
    """Show the block that an agent would get for a task or failure, recording no question."""
    services = await open_services(visit)
    given = {name: visit.field(name).strip() for name in _TRIAL_FIELDS}
    named = {
        f"{given['use']}_description": given["description"],
        **{name: given[name] for name in _TRIAL_FIELDS[2:]},
    }
    if given["use"] == "failure":
        del named["technology"]
    else:
        del named["error_message"]
    model = FailureQuestion if given["use"] == "failure" else TaskQuestion
    try:
        question = model.model_validate({name: value for name, value in named.items() if value})
    except ValidationError as error:
        return await _render_trial(services, given, problem=describe_first_problem(error))
    backend = visit.backend
    questions = Questions(
        backend.catalog, backend.retriever, run_blocking=backend.run, is_recording=False
    )
    caller = Caller(principals=visit.session.principals, name=visit.session.name)
    if isinstance(question, FailureQuestion):
        answer = await questions.answer_failure(services.record, question, caller)
    else:
        answer = await questions.answer_task(services.record, question, caller)
    return await _render_trial(services, given, answer)


async def _render_trial(
    services: ExperienceServices,
    given: dict[str, str],
    answer: Answer | None = None,
    problem: str = "",
) -> Response:
    choices = await services.read(
        partial(services.experience.administration.list_filter_values, services.record)
    )
    block = None if answer is None else build_block(answer.patterns, _BLOCK_TOKENS)
    return services.visit.html(
        "try.html",
        given=given,
        choices=choices,
        answer=answer,
        block=block,
        shown={one.id for one in block.patterns} if block else set(),
        problem=problem,
    )


async def retract_entry(visit: Visit) -> Response:
    """Retract an entry: searches omit it immediately."""
    services = await open_services(visit)
    await services.write(
        partial(
            services.experience.administration.delete_entry,
            services.record,
            _parse_id(visit.field("entry")),
            by=visit.session.name,
        )
    )
    return visit.redirect("")


def _parse_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidRequest(
            "this is not a valid pattern id", hint="copy the id from the list of patterns"
        ) from None


_PATTERN = "/patterns/{pattern:str}"

PANEL = SystemPanel(
    name="experience",
    path="experience",
    package="rag_assets.systems.experience.panel",
    tabs={"": "Patterns", "/try": "Try it", "/checkpoints": "Checkpoints"},
    pages=(
        PanelPage("", show_patterns),
        PanelPage("/try", show_trial),
        PanelPage("/try", run_trial, "POST", texts=("description", "error_message")),
        *THRESHOLD_PAGES,
        PanelPage("/checkpoints", show_checkpoints),
        PanelPage(_PATTERN, show_pattern),
        PanelPage(f"{_PATTERN}/split", split_entry, "POST"),
        PanelPage(f"{_PATTERN}/merge", merge_pattern, "POST"),
        PanelPage("/take-back", retract_entry, "POST"),
    ),
)
