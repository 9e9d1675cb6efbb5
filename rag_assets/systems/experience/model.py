"""What is captured, asked and answered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from rag_assets.api.experience_responses import CheckpointType, EntryType, Outcome, ProjectState
from rag_assets.api.model import TenantName
from rag_assets.retrieval.model import MAX_PATH, NUMBER
from rag_assets.systems.experience.entry_types import (
    describe_checkpoint,
    describe_entry,
    describe_retraction,
)

ANY_AGENT = "any"
"""The agent of an entry that is for every agent."""
MAX_TEXT = 20_000
MAX_PATTERNS = 5
MOST_OF_A_FAILURE = 3

# Postgres takes no zero byte in a text.
_TEXT = r"^[^\x00]*[^\s\x00][^\x00]*$"
_NAME = r"^[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$"
Text = Annotated[str, StringConstraints(max_length=MAX_TEXT, pattern=_TEXT)]
Name = Annotated[str, StringConstraints(max_length=100, pattern=_NAME)]
ShortName = Annotated[str, StringConstraints(max_length=50, pattern=_NAME)]
ExternalId = Annotated[str, StringConstraints(max_length=200, pattern=_NAME)]


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Posted(_Body):
    """What is posted.

    Attributes:
        tenant: may be left out if the token is for one only.
    """

    tenant: TenantName | None = None


class ProjectDraft(_Body):
    """A project that contributes entries.

    Attributes:
        owner: name of the token that may contribute to it from now on; for admins.
    """

    name: Annotated[str, StringConstraints(max_length=256, pattern=_NAME)]
    state: ProjectState = "active"
    owner: Annotated[str, StringConstraints(min_length=1, max_length=256)] | None = None


class About(_Body):
    """What of a project's code an entry is about.

    Attributes:
        path: of a file in its repository.
        symbol: in that file.
    """

    path: Annotated[str, StringConstraints(max_length=MAX_PATH, pattern=_NAME)]
    symbol: Annotated[str, StringConstraints(max_length=500, pattern=_NAME)] | None = None


class KeptAbout(About):
    """What an entry is about, as it is kept.

    Attributes:
        content: a key of what was there when it was captured; None: that is not known.
    """

    content: str | None = None

    @property
    def place(self) -> About:
        """The path and the symbol alone."""
        return About(path=self.path, symbol=self.symbol)


class EntryDraft(_Posted):
    """What a project learned, as it is captured.

    Attributes:
        agent_type: gates may leave it open.
        failure_description, error_message, solution_steps, success_verified: of a
            failure_solution.
        gate_type: of both kinds of gates.
        human_feedback, revision_approach: of a gate_rejection.
        approved_approach: of a gate_approval.
        when_to_try: when the solution is worth trying; by default the line of the error.
        about: the code that it is about.
        external_id: the caller's own id: the same may be sent again.
    """

    model_config = ConfigDict(json_schema_extra=describe_entry)

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


class CheckpointDraft(_Posted):
    """A moment of a project at which what it staged is embedded.

    Attributes:
        project_id: a manual one may leave it out, for all projects.
        external_id: the caller's own id: the same may be sent again.
    """

    model_config = ConfigDict(json_schema_extra=describe_checkpoint)

    checkpoint_type: CheckpointType
    project_id: UUID | None = None
    external_id: ExternalId | None = None


_Max = Annotated[int, Field(ge=1, le=MAX_PATTERNS), NUMBER]


class TaskQuestion(_Posted):
    """What a task is, before an agent is given it.

    Attributes:
        agent_type, task_type, technology: what is not given narrows nothing.
        max_results: patterns at most.
        project_id: of the project that asks: what only it contributed is left out.
    """

    task_description: Text
    agent_type: Name | None = None
    task_type: Name | None = None
    technology: Name | None = None
    max_results: _Max = MAX_PATTERNS
    project_id: UUID | None = None


class FailureQuestion(_Posted):
    """What failed. Attributes as those of TaskQuestion; there are three patterns at most."""

    failure_description: Text
    error_message: Text | None = None
    agent_type: Name | None = None
    task_type: Name | None = None
    project_id: UUID | None = None


class Task(_Body):
    """A task, as an orchestrator has it."""

    description: Text
    type: Name | None = None
    technology: Name | None = None


class ContextQuestion(_Posted):
    """A task and the context that an agent gets for it.

    Attributes:
        basic_context: what the agent is told in any case.
        token_budget: cl100k_base tokens of the block of patterns at most.
        project_id: of the project that asks.
    """

    task: Task
    agent_type: Name | None = None
    basic_context: Annotated[str, StringConstraints(max_length=200_000, pattern=r"^[^\x00]*$")] = ""
    token_budget: Annotated[int, Field(ge=200, le=8_000), NUMBER] = 1_500
    project_id: UUID | None = None

    @property
    def question(self) -> TaskQuestion:
        """The question about the task."""
        return TaskQuestion(
            task_description=self.task.description,
            agent_type=self.agent_type,
            task_type=self.task.type,
            technology=self.task.technology,
            project_id=self.project_id,
        )


class FeedbackDraft(_Posted):
    """Whether a pattern helped who asked."""

    query_id: UUID
    pattern_id: UUID
    outcome: Outcome


class PatternFilter(_Body):
    """The patterns that are listed, and their order.

    Attributes:
        order: by id; by use, where the pattern of the most answers comes first; or by newest entry.
        search: words, all of which one entry of the pattern contains; or the id of a pattern.
        entry_type, agent_type, task_type, technology, project_id: of an entry of the pattern.
    """

    order: Literal["id", "use", "newest"] = "id"
    search: Annotated[str, StringConstraints(max_length=200, pattern=_TEXT)] | None = None
    entry_type: EntryType | None = None
    agent_type: Name | None = None
    task_type: Name | None = None
    technology: Name | None = None
    project_id: UUID | None = None


class MergeDraft(_Posted):
    """The pattern that another one becomes a part of.

    Attributes:
        confirm: merge them even though their problems differ.
    """

    into: UUID
    confirm: Annotated[bool, Field(strict=True)] = False


class SplitDraft(_Posted):
    """The entry that is taken out of a pattern."""

    entry_id: UUID


class RetractDraft(_Posted):
    """Whose entries are taken back: a project's, or those captured with a token.

    Attributes:
        token: its id, or its whole name as a receipt has it.
    """

    model_config = ConfigDict(json_schema_extra=describe_retraction)

    project_id: UUID | None = None
    token: Annotated[str, StringConstraints(min_length=1, max_length=1_000)] | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry, as it is kept.

    Attributes:
        contributed_by: the name of the token that captured it.
        embedded_at: from when on it is found; None: not yet.
        failure: why it never will be.
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
    about: tuple[KeptAbout, ...]
    contributed_by: str | None
    captured_at: datetime
    checkpoint_id: UUID | None
    document_id: str | None
    pattern_id: UUID | None
    embedded_at: datetime | None
    failure: str | None = None
