"""Request bodies and the rules for their fields, stored entries, and the source of entries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from rag_assets.api.experience_responses import CheckpointType, EntryType, Outcome, ProjectState
from rag_assets.common.errors import ConfigurationError, InvalidRequest
from rag_assets.common.invalid_values import describe_first_problem
from rag_assets.ingest.sources.kinds import SourceConfig, SourceContext, SourceKind
from rag_assets.ingest.sources.records import RecordsConfig, RecordsSource
from rag_assets.search.model import MAX_PATH, NUMBER, TenantName
from rag_assets.systems.experience.errors import NotVerified

ANY_AGENT = "any"
"""Agent type of entries for every agent."""
MAX_TEXT = 20_000
MAX_PATTERNS = 5
MAX_FAILURE_PATTERNS = 3

# Postgres does not accept zero bytes in a text.
_TEXT = r"^[^\x00]*[^\s\x00][^\x00]*$"
_NAME = r"^[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$"
Text = Annotated[str, StringConstraints(max_length=MAX_TEXT, pattern=_TEXT)]
Name = Annotated[str, StringConstraints(max_length=100, pattern=_NAME)]
ShortName = Annotated[str, StringConstraints(max_length=50, pattern=_NAME)]
ExternalId = Annotated[str, StringConstraints(max_length=200, pattern=_NAME)]

FIELDS: Mapping[EntryType, tuple[str, ...]] = {
    "failure_solution": (
        *("failure_description", "error_message", "solution_steps", "success_verified"),
    ),
    "gate_rejection": ("gate_type", "human_feedback", "revision_approach"),
    "gate_approval": ("gate_type", "approved_approach"),
}
"""The fields that only this type of entry has."""
REQUIRED_FIELDS: Mapping[EntryType, tuple[str, ...]] = {
    "failure_solution": ("agent_type", "failure_description"),
    "gate_rejection": ("gate_type", "human_feedback", "revision_approach"),
    "gate_approval": ("gate_type", "approved_approach"),
}
"""The required fields of each type; the solution of a failure must also be verified."""
_ALL_FIELDS = frozenset(name for names in FIELDS.values() for name in names)

_Model = TypeVar("_Model", bound=BaseModel)
_TEXT_SCHEMA = {"type": "string"}
_NULL_SCHEMA = {"type": "null"}


def add_entry_types(schema: dict[str, Any]) -> None:
    """Add the fields of each type to the JSON schema of an entry."""
    schema["oneOf"] = [_build_schema(entry_type) for entry_type in FIELDS]


def add_checkpoint_rule(schema: dict[str, Any]) -> None:
    """Add to the JSON schema that a checkpoint must name a project unless it is manual."""
    schema["anyOf"] = [
        {"properties": {"checkpoint_type": {"const": "manual"}}},
        {"properties": {"project_id": _TEXT_SCHEMA}, "required": ["project_id"]},
    ]


def add_retraction_rule(schema: dict[str, Any]) -> None:
    """Add to the JSON schema that a retraction must set exactly one of project_id and token."""
    schema["oneOf"] = [
        {
            "properties": {"project_id": _TEXT_SCHEMA, "token": _NULL_SCHEMA},
            "required": ["project_id"],
        },
        {"properties": {"project_id": _NULL_SCHEMA, "token": _TEXT_SCHEMA}, "required": ["token"]},
    ]


def _build_schema(entry_type: EntryType) -> dict[str, Any]:
    others = sorted(_ALL_FIELDS.difference(FIELDS[entry_type]))
    properties: dict[str, Any] = {"entry_type": {"const": entry_type}}
    properties |= dict.fromkeys(REQUIRED_FIELDS[entry_type], _TEXT_SCHEMA) | dict.fromkeys(
        others, _NULL_SCHEMA
    )
    if entry_type == "failure_solution":
        properties |= {"solution_steps": _TEXT_SCHEMA, "success_verified": {"const": True}}
    needed = [name for name, schema in properties.items() if schema is not _NULL_SCHEMA]
    return {"title": entry_type, "properties": properties, "required": needed}


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _TenantBody(_Body):
    """Base of the bodies that can name a tenant.

    Attributes:
        tenant: may be omitted if the token is for a single tenant.
    """

    tenant: TenantName | None = None


class ProjectDraft(_Body):
    """A project that contributes entries.

    Attributes:
        owner: name of the token that may contribute to it; only admins set it.
    """

    name: Annotated[str, StringConstraints(max_length=256, pattern=_NAME)]
    state: ProjectState = "active"
    owner: Annotated[str, StringConstraints(min_length=1, max_length=256)] | None = None


class About(_Body):
    """A location in a project's code that an entry is about.

    Attributes:
        path: path of a file in its repository.
        symbol: name of a symbol in that file.
    """

    path: Annotated[str, StringConstraints(max_length=MAX_PATH, pattern=_NAME)]
    symbol: Annotated[str, StringConstraints(max_length=500, pattern=_NAME)] | None = None


class CapturedAbout(About):
    """A location that an entry is about, with its content when the entry was captured.

    Attributes:
        content: hash of the content; None if unknown.
    """

    content: str | None = None

    @property
    def location(self) -> About:
        """Return the path and the symbol, without the content."""
        return About(path=self.path, symbol=self.symbol)


class EntryDraft(_TenantBody):
    """An entry as a project captures it.

    Attributes:
        agent_type: type of the agent; optional for gates.
        failure_description, error_message, solution_steps, success_verified: fields of a
            failure_solution.
        gate_type: field of gate_rejection and gate_approval.
        human_feedback, revision_approach: fields of a gate_rejection.
        approved_approach: field of a gate_approval.
        when_to_try: when to try the solution; by default, after the entry's error.
        about: locations in the code that the entry is about.
        external_id: id chosen by the caller; repeating a request with it has no effect.
    """

    model_config = ConfigDict(json_schema_extra=add_entry_types)

    entry_type: EntryType
    project_id: UUID
    agent_type: Name | None = None
    task_type: Name | None = None
    technology: Name | None = None
    failure_description: Text | None = None
    error_message: Text | None = None
    solution_steps: Text | None = None
    success_verified: Annotated[bool, Field(strict=True)] | None = None
    gate_type: ShortName | None = None
    human_feedback: Text | None = None
    revision_approach: Text | None = None
    approved_approach: Text | None = None
    when_to_try: Text | None = None
    about: Annotated[tuple[About, ...], Field(max_length=50)] = ()
    external_id: ExternalId | None = None


class CheckpointDraft(_TenantBody):
    """A request to embed the entries that a project has staged.

    Attributes:
        project_id: id of the project; None (manual checkpoints only) stands for all projects.
        external_id: id chosen by the caller; repeating a request with it has no effect.
    """

    model_config = ConfigDict(json_schema_extra=add_checkpoint_rule)

    checkpoint_type: CheckpointType
    project_id: UUID | None = None
    external_id: ExternalId | None = None


_Max = Annotated[int, Field(ge=1, le=MAX_PATTERNS), NUMBER]


class TaskQuestion(_TenantBody):
    """A question about a task, asked before an agent starts it.

    Attributes:
        agent_type, task_type, technology: filters; None matches all entries.
        max_results: maximum number of patterns.
        project_id: id of the asking project, whose own entries are excluded.
    """

    task_description: Text
    agent_type: Name | None = None
    task_type: Name | None = None
    technology: Name | None = None
    max_results: _Max = MAX_PATTERNS
    project_id: UUID | None = None


class FailureQuestion(_TenantBody):
    """A question about a failure; see TaskQuestion. The answer has at most three patterns."""

    failure_description: Text
    error_message: Text | None = None
    agent_type: Name | None = None
    task_type: Name | None = None
    project_id: UUID | None = None


class Task(_Body):
    """A task of an orchestrator."""

    description: Text
    type: Name | None = None
    technology: Name | None = None


class ContextQuestion(_TenantBody):
    """A task and the basic context that an agent gets for it.

    Attributes:
        basic_context: text that the agent always gets.
        token_budget: maximum size of the block of patterns, in cl100k_base tokens.
        project_id: id of the asking project.
    """

    task: Task
    agent_type: Name | None = None
    basic_context: Annotated[str, StringConstraints(max_length=200_000, pattern=r"^[^\x00]*$")] = ""
    token_budget: Annotated[int, Field(ge=200, le=8_000), NUMBER] = 1_500
    project_id: UUID | None = None

    @property
    def task_question(self) -> TaskQuestion:
        """Return the question about the task."""
        return TaskQuestion(
            task_description=self.task.description,
            agent_type=self.agent_type,
            task_type=self.task.type,
            technology=self.task.technology,
            project_id=self.project_id,
        )


class FeedbackDraft(_TenantBody):
    """Whether a pattern of an answer helped."""

    query_id: UUID
    pattern_id: UUID
    outcome: Outcome


class PatternFilter(_Body):
    """A filter and an order for listing patterns.

    Attributes:
        order: order of the patterns: by id; by number of answers, highest first; or by newest
            entry.
        search: words that a single entry of the pattern must contain, or the id of a pattern.
        entry_type, agent_type, task_type, technology, project_id: values that an entry of the
            pattern must have.
    """

    order: Literal["id", "use", "newest"] = "id"
    search: Annotated[str, StringConstraints(max_length=200, pattern=_TEXT)] | None = None
    entry_type: EntryType | None = None
    agent_type: Name | None = None
    task_type: Name | None = None
    technology: Name | None = None
    project_id: UUID | None = None


class MergeDraft(_TenantBody):
    """A request to merge a pattern into a different one.

    Attributes:
        confirm: whether to merge them even if their problems differ.
    """

    into: UUID
    confirm: Annotated[bool, Field(strict=True)] = False


class SplitDraft(_TenantBody):
    """A request to move an entry out of a pattern."""

    entry_id: UUID


class RetractDraft(_TenantBody):
    """A request to retract the entries of a project, or the entries captured with a token.

    Attributes:
        token: id of the token, or its full name as in a receipt.
    """

    model_config = ConfigDict(json_schema_extra=add_retraction_rule)

    project_id: UUID | None = None
    token: Annotated[str, StringConstraints(min_length=1, max_length=1_000)] | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """An entry as it is stored.

    Attributes:
        contributed_by: the name of the token that captured it.
        embedded_at: when searches first found the entry; None if they do not find it yet.
        failure: kind of failure that makes it impossible to embed the entry; None without one.
    """

    id: UUID
    entry_type: EntryType
    project_id: UUID | None
    agent_type: str
    task_type: str | None
    technology: str | None
    failure_description: str | None
    error_message: str | None
    solution_steps: str | None
    gate_type: str | None
    human_feedback: str | None
    revision_approach: str | None
    approved_approach: str | None
    when_to_try: str | None
    about: tuple[CapturedAbout, ...]
    contributed_by: str | None
    captured_at: datetime
    checkpoint_id: UUID | None
    document_id: str | None
    pattern_id: UUID | None
    embedded_at: datetime | None
    failure: str | None = None


def find_entry_problems(draft: EntryDraft) -> Iterator[tuple[str, str]]:
    """Yield each invalid field of an entry with its problem."""
    own = FIELDS[draft.entry_type]
    for name in sorted(_ALL_FIELDS.difference(own)):
        if getattr(draft, name) is not None:
            yield name, f"a {draft.entry_type} must not have {name}"
    for name in REQUIRED_FIELDS[draft.entry_type]:
        if getattr(draft, name) is None:
            yield name, f"a {draft.entry_type} requires {name}"


def require_verified(draft: EntryDraft) -> None:
    """Require a verified solution of a failure.

    Raises:
        NotVerified: the solution is missing or not verified.
    """
    if draft.entry_type != "failure_solution":
        return
    if draft.solution_steps is None:
        raise NotVerified(
            "solution_steps: a failure needs at least one solution step",
            hint="capture the failure after it has been solved",
        )
    if not draft.success_verified:
        raise NotVerified(
            "success_verified: the solution was not verified",
            hint="verify the solution, then capture the entry with success_verified: true",
        )


def find_checkpoint_problems(draft: CheckpointDraft) -> Iterator[tuple[str, str]]:
    """Yield each invalid field of a checkpoint with its problem."""
    if draft.project_id is None and draft.checkpoint_type != "manual":
        yield "project_id", f"a checkpoint of type {draft.checkpoint_type} requires project_id"


def find_retraction_problems(draft: RetractDraft) -> Iterator[tuple[str, str]]:
    """Yield each invalid field of a retraction with its problem."""
    if (draft.project_id is None) == (draft.token is None):
        yield "project_id", "set exactly one of project_id and token"


def validate_fields(model: type[_Model], values: Mapping[str, Any], *, hint: str) -> _Model:
    """Return an instance of a model with these values; None keeps the default.

    Raises:
        InvalidRequest: a field is invalid; the error names the first one.
    """
    try:
        return model.model_validate(
            {name: value for name, value in values.items() if value is not None}
        )
    except ValidationError as error:
        raise InvalidRequest(describe_first_problem(error), hint=hint) from None


def require_no_problem(problems: Iterator[tuple[str, str]]) -> None:
    """Require that no field has a problem.

    Raises:
        InvalidRequest: a field is invalid; the error names the first one.
    """
    for name, problem in problems:
        raise InvalidRequest(f"{name}: {problem}", hint="correct that field")


SOURCE_TYPE = "experience"
"""Source type of every entry's document."""


class EntriesConfig(SourceConfig):
    """Entries that orchestrators captured, one document each.

    Attributes:
        name: name of the source; part of every document's identity.
        scope: access scope of entries; by default the tenant's.
    """

    type: Literal["experience"] = "experience"


def _build_source(config: EntriesConfig, context: SourceContext) -> RecordsSource:
    if context.records is None:
        raise ConfigurationError(
            f"source {config.name!r}: reading entries needs an open catalog",
            hint="open the source with the tenant's catalog",
        )
    return RecordsSource(RecordsConfig(name=config.name, scope=config.scope), context.records)


EXPERIENCE = SourceKind(
    "experience", EntriesConfig, _build_source, kept=True, source_types=(SOURCE_TYPE,)
)
