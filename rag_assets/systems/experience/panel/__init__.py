"""Pages of the panel: patterns, one pattern with its entries, a trial, checkpoints, and forms."""

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
from rag_assets.common.invalid_values import describe_problem
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
_TRIED = ("use", "description", "error_message", "agent_type", "task_type", "technology")
_BLOCK_TOKENS: int = ContextQuestion.model_fields["token_budget"].default
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Room:
    """The current state of the session's tenant, with the services for a page."""

    visit: Visit
    record: TenantRecord
    experience: Experience

    async def read(self, work: Callable[[], _T]) -> _T:
        """Run blocking work; see Backend.run."""
        return await self.visit.backend.run(self.record.id, self.visit.session.name, work)

    async def write(self, work: Callable[[], _T]) -> _T:
        """Run work that changes the tenant; see Backend.write."""
        return await self.visit.backend.write(self.record.id, work)


async def open_room(visit: Visit) -> Room:
    """Return the room of a visit.

    Raises:
        UnknownTenant: the tenant was removed.
        NoExperience: the tenant has another profile now.
    """
    backend = visit.backend
    experience = Experience(backend.catalog, backend.retriever.masker)
    record = await backend.run(
        visit.tenant_id, visit.session.name, partial(experience.record, visit.tenant_id)
    )
    return Room(visit, record, experience)


async def patterns(visit: Visit) -> Response:
    """Show the patterns that match a filter, most used first, with the report on the tenant.

    If the parameter `merging` is the id of a pattern, each listed pattern is offered as target for
    merging that pattern.
    """
    room = await open_room(visit)
    administration, record = room.experience.administration, room.record
    parameters = visit.request.query_params
    given = {name: value for name in _FILTERS if (value := parameters.get(name, "").strip())}
    wanted = validate_fields(PatternFilter, {"order": "use"} | given, hint="correct that field")
    after = _parse_id(parameters["after"]) if parameters.get("after") else None
    merging = None
    if parameters.get("merging"):
        details = partial(administration.details, record, _parse_id(parameters["merging"]))
        merging = (await room.read(details)).pattern
        given["merging"] = str(merging.id)
    projects = await room.read(partial(room.experience.checkpoints.projects, record.id))
    page = partial(administration.page, record, after=after, limit=_PAGE + 1, wanted=wanted)
    found = await room.read(page)
    last = found[_PAGE - 1].id if len(found) > _PAGE else None
    return visit.html(
        "patterns.html",
        patterns=[one for one in found[:_PAGE] if merging is None or one.id != merging.id],
        following=None if last is None else urlencode(given | {"after": str(last)}),
        wanted=wanted,
        is_filtered=bool(given.keys() - {"order", "merging"}),
        is_narrowed=bool(given.keys() - {"order", "merging", "search"}),
        choices=await room.read(partial(administration.choices, record)),
        projects={project.id: project.name for project in projects[:MAX_CHOICES]},
        report=await room.read(partial(administration.report, record)),
        merging=merging,
    )


async def pattern(visit: Visit) -> Response:
    """Show one pattern with its entries and merges, and their texts."""
    room = await open_room(visit)
    id_ = _parse_id(visit.request.path_params["pattern"])
    details = await room.read(partial(room.experience.administration.details, room.record, id_))
    projects = await room.read(partial(room.experience.checkpoints.projects, room.record.id))
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


async def checkpoints(visit: Visit) -> Response:
    """Show the latest checkpoints, and the number of staged entries."""
    room = await open_room(visit)
    found = await room.read(partial(room.experience.checkpoints.latest, room.record.id, _PAGE))
    projects = await room.read(partial(room.experience.checkpoints.projects, room.record.id))
    report = await room.read(partial(room.experience.administration.report, room.record))
    names = {project.id: project.name for project in projects}
    return visit.html("checkpoints.html", checkpoints=found, projects=names, report=report)


async def split(visit: Visit) -> Response:
    """Move an entry out of its pattern, and show its new pattern."""
    room = await open_room(visit)
    apart = await room.write(
        partial(
            room.experience.administration.split,
            room.record,
            _parse_id(visit.request.path_params["pattern"]),
            _parse_id(visit.field("entry")),
            by=visit.session.name,
        )
    )
    return visit.redirect(f"/patterns/{apart.id}")


async def merge(visit: Visit) -> Response:
    """Merge a pattern into a different one and show it; ask first if their problems differ."""
    room = await open_room(visit)
    administration, record = room.experience.administration, room.record
    ids = _parse_id(visit.request.path_params["pattern"]), _parse_id(visit.field("into").strip())
    is_confirmed = visit.field("confirmed") == "yes"
    try:
        made = await room.write(
            partial(
                administration.merge, record, *ids, by=visit.session.name, confirmed=is_confirmed
            )
        )
    except ProblemsDiffer:
        both = [await room.read(partial(administration.details, record, id_)) for id_ in ids]
        return visit.html("merge.html", _CONFLICT, both=both)
    return visit.redirect(f"/patterns/{made.pattern.id}")


async def trial(visit: Visit) -> Response:
    """Show the form for a trial."""
    return await _trial_page(await open_room(visit), dict.fromkeys(_TRIED, "") | {"use": "failure"})


async def attempt(visit: Visit) -> Response:
    """Show the block of an agent for a task or a failure, without recording a question."""
    room = await open_room(visit)
    given = {name: visit.field(name).strip() for name in _TRIED}
    named = {
        f"{given['use']}_description": given["description"],
        **{name: given[name] for name in _TRIED[2:]},
    }
    if given["use"] == "failure":
        del named["technology"]
    else:
        del named["error_message"]
    model = FailureQuestion if given["use"] == "failure" else TaskQuestion
    try:
        question = model.model_validate({name: value for name, value in named.items() if value})
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return await _trial_page(room, given, problem=describe_problem(first))
    backend = visit.backend
    questions = Questions(
        backend.catalog, backend.retriever, run_blocking=backend.run, recorded=False
    )
    caller = Caller(principals=visit.session.principals, name=visit.session.name)
    if isinstance(question, FailureQuestion):
        answer = await questions.for_failure(room.record, question, caller)
    else:
        answer = await questions.for_task(room.record, question, caller)
    return await _trial_page(room, given, answer)


async def _trial_page(
    room: Room, given: dict[str, str], answer: Answer | None = None, problem: str = ""
) -> Response:
    choices = await room.read(partial(room.experience.administration.choices, room.record))
    block = None if answer is None else build_block(answer.patterns, _BLOCK_TOKENS)
    return room.visit.html(
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
    room = await open_room(visit)
    await room.write(
        partial(
            room.experience.administration.delete_entry,
            room.record,
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
        PanelPage("", patterns),
        PanelPage("/try", trial),
        PanelPage("/try", attempt, "POST", texts=("description", "error_message")),
        *THRESHOLD_PAGES,
        PanelPage("/checkpoints", checkpoints),
        PanelPage(_PATTERN, pattern),
        PanelPage(f"{_PATTERN}/split", split, "POST"),
        PanelPage(f"{_PATTERN}/merge", merge, "POST"),
        PanelPage("/take-back", retract_entry, "POST"),
    ),
)
