"""Panel of experience: patterns with their entries, checkpoints, and a trial of questions."""

from __future__ import annotations

import re
from functools import partial
from itertools import islice
from urllib.parse import urlencode
from uuid import UUID

from pydantic import ValidationError
from starlette.responses import Response

from rag_assets.api.experience_responses import Answer
from rag_assets.common.errors import InvalidRequest
from rag_assets.common.invalid_values import describe_first_problem
from rag_assets.panel.frame import PanelPage, SystemPanel, Visit
from rag_assets.panel.thresholds import THRESHOLD_PAGES
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

_PAGE_PATTERNS = 50
_MAX_SHOWN_ENTRIES = 20
_MAX_SHOWN_MERGES = 50
_CONFLICT = 409
_NUMBER = re.compile(r"[0-9]{1,9}")
_FILTERS = ("order", "search", "entry_type", "agent_type", "task_type", "technology", "project_id")
_TRIAL_FIELDS = ("use", "description", "error_message", "agent_type", "task_type", "technology")
_BLOCK_TOKENS: int = ContextQuestion.model_fields["token_budget"].default


async def open_tenant(visit: Visit) -> tuple[Experience, TenantRecord]:
    """Return the services for the session's tenant, and the current record of the tenant.

    Raises:
        UnknownTenant: the tenant was removed.
        NoExperience: the tenant has another profile now.
    """
    experience = Experience(visit.backend.catalog, visit.backend.retriever.masker)
    return experience, await visit.read(partial(experience.get_record, visit.tenant_id))


async def show_patterns(visit: Visit) -> Response:
    """Show the patterns that match a filter, most used first, and the report on the tenant.

    If the parameter `merging` is the id of a pattern, each listed pattern is offered as the target
    of its merge.
    """
    experience, record = await open_tenant(visit)
    administration = experience.administration
    parameters = visit.request.query_params
    filter_values = {
        name: value for name in _FILTERS if (value := parameters.get(name, "").strip())
    }
    pattern_filter = validate_fields(
        PatternFilter, {"order": "use"} | filter_values, hint="correct that field"
    )
    after = _parse_id(parameters["after"]) if parameters.get("after") else None
    merging = None
    if parameters.get("merging"):
        details = partial(administration.read_details, record, _parse_id(parameters["merging"]))
        merging = (await visit.read(details)).pattern
        filter_values["merging"] = str(merging.id)
    projects = await _read_project_names(visit, experience)
    page = partial(
        administration.list_patterns,
        record,
        after=after,
        limit=_PAGE_PATTERNS + 1,
        pattern_filter=pattern_filter,
    )
    patterns = await visit.read(page)
    last = patterns[_PAGE_PATTERNS - 1].id if len(patterns) > _PAGE_PATTERNS else None
    return visit.html(
        "patterns.html",
        patterns=[
            item for item in patterns[:_PAGE_PATTERNS] if merging is None or item.id != merging.id
        ],
        following=None if last is None else urlencode(filter_values | {"after": str(last)}),
        wanted=pattern_filter,
        is_filtered=bool(filter_values.keys() - {"order", "merging"}),
        is_narrowed=bool(filter_values.keys() - {"order", "merging", "search"}),
        choices=await visit.read(partial(administration.list_filter_values, record)),
        projects=dict(islice(projects.items(), MAX_CHOICES)),
        report=await visit.read(partial(administration.build_report, record)),
        merging=merging,
    )


async def _read_project_names(visit: Visit, experience: Experience) -> dict[UUID, str]:
    projects = await visit.read(partial(experience.checkpoints.list_projects, visit.tenant_id))
    return {project.id: project.name for project in projects}


async def show_pattern(visit: Visit) -> Response:
    """Show a pattern with its entries and merges."""
    experience, record = await open_tenant(visit)
    id_ = _parse_id(visit.request.path_params["pattern"])
    details = await visit.read(partial(experience.administration.read_details, record, id_))
    first = visit.request.query_params.get("first", "")
    start = int(first) if _NUMBER.fullmatch(first) else 0
    return visit.html(
        "pattern.html",
        details=details,
        start=start,
        entries=details.entries[start : start + _MAX_SHOWN_ENTRIES],
        following=start + _MAX_SHOWN_ENTRIES
        if start + _MAX_SHOWN_ENTRIES < len(details.entries)
        else None,
        merges=details.merges[::-1][:_MAX_SHOWN_MERGES],
        mergeable={entry.id for entry in details.entries} if len(details.entries) > 1 else set(),
        projects=await _read_project_names(visit, experience),
    )


async def show_checkpoints(visit: Visit) -> Response:
    """Show the latest checkpoints, and the number of staged entries."""
    experience, record = await open_tenant(visit)
    return visit.html(
        "checkpoints.html",
        checkpoints=await visit.read(
            partial(experience.checkpoints.list_latest, record.id, _PAGE_PATTERNS)
        ),
        projects=await _read_project_names(visit, experience),
        report=await visit.read(partial(experience.administration.build_report, record)),
    )


async def split_entry(visit: Visit) -> Response:
    """Move an entry out of its pattern, and show its new pattern."""
    experience, record = await open_tenant(visit)
    ids = _parse_id(visit.request.path_params["pattern"]), _parse_id(visit.field("entry"))
    apart = await visit.write(partial(experience.administration.split, record, *ids, by=visit.user))
    return visit.redirect(f"/patterns/{apart.id}")


async def merge_pattern(visit: Visit) -> Response:
    """Merge a pattern into another; ask for confirmation first if their problems differ."""
    experience, record = await open_tenant(visit)
    administration = experience.administration
    ids = _parse_id(visit.request.path_params["pattern"]), _parse_id(visit.field("into").strip())
    merge = partial(administration.merge, record, *ids, by=visit.user)
    try:
        merged = await visit.write(partial(merge, confirmed=visit.field("confirmed") == "yes"))
    except ProblemsDiffer:
        both_patterns = [
            await visit.read(partial(administration.read_details, record, id_)) for id_ in ids
        ]
        return visit.html("merge.html", _CONFLICT, both=both_patterns)
    return visit.redirect(f"/patterns/{merged.pattern.id}")


async def show_trial(visit: Visit) -> Response:
    """Show the empty form in which an admin enters a task or a failure to try."""
    form_values = dict.fromkeys(_TRIAL_FIELDS, "") | {"use": "failure"}
    return await _render_trial(visit, await open_tenant(visit), form_values)


async def run_trial(visit: Visit) -> Response:
    """Show the block that an agent would get for a task or failure, recording no question."""
    opened = await open_tenant(visit)
    form_values = {name: visit.field(name).strip() for name in _TRIAL_FIELDS}
    question_fields = {
        f"{form_values['use']}_description": form_values["description"],
        **{name: form_values[name] for name in _TRIAL_FIELDS[2:]},
    }
    is_failure = form_values["use"] == "failure"
    del question_fields["technology" if is_failure else "error_message"]
    model = FailureQuestion if is_failure else TaskQuestion
    try:
        question = model.model_validate(
            {name: value for name, value in question_fields.items() if value}
        )
    except ValidationError as error:
        return await _render_trial(
            visit, opened, form_values, problem=describe_first_problem(error)
        )
    backend = visit.backend
    questions = Questions(
        backend.catalog, backend.retriever, run_blocking=backend.run, is_recording=False
    )
    if isinstance(question, FailureQuestion):
        answer = await questions.answer_failure(opened[1], question, visit.caller)
    else:
        answer = await questions.answer_task(opened[1], question, visit.caller)
    return await _render_trial(visit, opened, form_values, answer)


async def _render_trial(
    visit: Visit,
    opened: tuple[Experience, TenantRecord],
    form_values: dict[str, str],
    answer: Answer | None = None,
    problem: str = "",
) -> Response:
    experience, record = opened
    block = None if answer is None else build_block(answer.patterns, _BLOCK_TOKENS)
    return visit.html(
        "try.html",
        given=form_values,
        choices=await visit.read(partial(experience.administration.list_filter_values, record)),
        answer=answer,
        block=block,
        shown={pattern.id for pattern in block.patterns} if block else set(),
        problem=problem,
    )


async def retract_entry(visit: Visit) -> Response:
    """Retract an entry: searches omit it immediately."""
    experience, record = await open_tenant(visit)
    delete = partial(experience.administration.delete_entry, record, by=visit.user)
    await visit.write(partial(delete, _parse_id(visit.field("entry"))))
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
