"""The operations on experience, for the role orchestrator unless marked "For admins"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias
from uuid import UUID

from rag_assets.api.experience_responses import (
    Answer,
    CapturedEntry,
    CheckpointProgress,
    CheckpointType,
    Context,
    EntryType,
    FeedbackCounts,
    Outcome,
    Pattern,
    PatternDetails,
    Patterns,
    Project,
    ProjectState,
    Report,
    RequestedCheckpoint,
    Retracted,
    SplitPattern,
)
from rag_assets.client.calls import Pages, operation

_ADDRESS = "/rag/experience"
_PAGE_PATTERNS = 100
PatternOrder: TypeAlias = Literal["id", "use", "newest"]


@operation("PUT", f"{_ADDRESS}/projects/{{project}}", Project, query=("tenant",))
def put_project(
    project: UUID | str, name: str, *, state: ProjectState = "active", tenant: str | None = None
) -> None:
    """Create a project that contributes entries, or change its name and state."""


@operation("POST", f"{_ADDRESS}/entries", CapturedEntry)
def capture_experience(
    entry_type: EntryType,
    project_id: UUID | str,
    *,
    agent_type: str | None = None,
    task_type: str | None = None,
    technology: str | None = None,
    failure_description: str | None = None,
    error_message: str | None = None,
    solution_steps: str | None = None,
    success_verified: bool | None = None,
    gate_type: str | None = None,
    human_feedback: str | None = None,
    revision_approach: str | None = None,
    approved_approach: str | None = None,
    when_to_try: str | None = None,
    about: Sequence[Mapping[str, str]] = (),
    external_id: str | None = None,
    tenant: str | None = None,
) -> dict[str, Any]:
    """Capture an entry of a project. It stays staged until a checkpoint embeds it.

    Args:
        entry_type: determines which other arguments are required.
        project_id: id of the project that contributes the entry.
        about: locations in the code, each with a path and optionally a symbol.
        external_id: id of the request, chosen by the caller, which makes it repeatable.
    """
    return {"repeatable": external_id is not None}


@operation("POST", f"{_ADDRESS}/checkpoints", RequestedCheckpoint)
def request_checkpoint(
    checkpoint_type: CheckpointType,
    *,
    project_id: UUID | str | None = None,
    external_id: str | None = None,
    tenant: str | None = None,
) -> dict[str, Any]:
    """Request that a project's staged entries are embedded in the background.

    Args:
        checkpoint_type: the event that causes the checkpoint.
        project_id: id of the project; None, for all projects, requires a manual checkpoint.
        external_id: id of the request, chosen by the caller, which makes it repeatable.
    """
    return {"repeatable": external_id is not None}


@operation("GET", f"{_ADDRESS}/checkpoints/{{checkpoint}}", CheckpointProgress)
def checkpoint(checkpoint_id: UUID | str, *, tenant: str | None = None) -> None:
    """Return the progress of a checkpoint."""


@operation("POST", f"{_ADDRESS}/task", Answer)
def experience_for_task(
    task_description: str,
    *,
    agent_type: str | None = None,
    task_type: str | None = None,
    technology: str | None = None,
    max_results: int | None = None,
    project_id: UUID | str | None = None,
    tenant: str | None = None,
) -> None:
    """Find patterns of past projects for a task.

    Args:
        agent_type, task_type, technology: filters; None matches all entries.
        max_results: maximum number of patterns, 1 to 5.
        project_id: id of the asking project, whose own entries are excluded.
    """


@operation("POST", f"{_ADDRESS}/failure", Answer)
def experience_for_failure(
    failure_description: str,
    *,
    error_message: str | None = None,
    agent_type: str | None = None,
    task_type: str | None = None,
    project_id: UUID | str | None = None,
    tenant: str | None = None,
) -> None:
    """Find solutions to similar failures; see experience_for_task for the arguments."""


@operation("POST", f"{_ADDRESS}/context", Context)
def experience_context(
    task: Mapping[str, Any],
    *,
    agent_type: str | None = None,
    basic_context: str = "",
    token_budget: int | None = None,
    project_id: UUID | str | None = None,
    tenant: str | None = None,
) -> None:
    """Return an agent's context for a task, with a block of patterns.

    Args:
        task: the task, with its description and optionally its type and technology.
        basic_context: text that the agent always gets.
        token_budget: maximum size of the block in cl100k_base tokens, 200 to 8,000.
    """


@operation("POST", f"{_ADDRESS}/feedback", FeedbackCounts)
def experience_feedback(
    query_id: UUID | str, pattern_id: UUID | str, outcome: Outcome, *, tenant: str | None = None
) -> None:
    """Record whether a pattern helped; later feedback replaces earlier feedback."""


@operation("GET", f"{_ADDRESS}/patterns", Patterns)
def patterns(
    *,
    order: PatternOrder = "id",
    search: str | None = None,
    entry_type: EntryType | None = None,
    agent_type: str | None = None,
    task_type: str | None = None,
    technology: str | None = None,
    project_id: UUID | str | None = None,
    after: UUID | str | None = None,
    limit: int = _PAGE_PATTERNS,
    tenant: str | None = None,
) -> None:
    """Return a page of patterns. For admins.

    Args:
        order: order of the patterns: by id; by number of answers, highest first; or newest first.
        search: words that an entry of the pattern must contain, or the id of a pattern.
        entry_type, agent_type, task_type, technology, project_id: values that an entry of the
            pattern must have.
        after: the `next` of the previous page, in the same order.
    """


def all_patterns(
    *, order: PatternOrder = "id", page: int = _PAGE_PATTERNS, tenant: str | None = None
) -> Pages[Patterns, Pattern]:
    """Iterate over all patterns. For admins."""
    first = patterns(order=order, limit=page, tenant=tenant)
    return Pages(first, lambda fetched: fetched.patterns)


@operation("GET", f"{_ADDRESS}/patterns/{{pattern}}", PatternDetails)
def pattern(pattern_id: UUID | str, *, tenant: str | None = None) -> None:
    """Return a pattern with its entries and merges. For admins."""


@operation("POST", f"{_ADDRESS}/patterns/{{pattern}}/merge", PatternDetails, repeatable=False)
def merge_pattern(
    pattern_id: UUID | str, into: UUID | str, *, confirm: bool = False, tenant: str | None = None
) -> None:
    """Merge a pattern into another pattern. For admins.

    Args:
        confirm: merge the patterns even if their problems differ.
    """


@operation("POST", f"{_ADDRESS}/patterns/{{pattern}}/split", SplitPattern, repeatable=False)
def split_pattern(
    pattern_id: UUID | str, entry_id: UUID | str, *, tenant: str | None = None
) -> None:
    """Move an entry out of a pattern into a new pattern. For admins."""


@operation("DELETE", f"{_ADDRESS}/entries/{{entry}}", Retracted)
def delete_entry(entry_id: UUID | str, *, tenant: str | None = None) -> None:
    """Retract an entry; searches omit it immediately. For admins."""


@operation("POST", f"{_ADDRESS}/retract", Retracted)
def retract_experience(
    *, project_id: UUID | str | None = None, token: str | None = None, tenant: str | None = None
) -> None:
    """Retract all entries of a project, or all entries captured with a token. For admins.

    Args:
        token: id of the token, or its full name as in a receipt.
    """


@operation("GET", f"{_ADDRESS}/report", Report)
def experience_report(*, tenant: str | None = None) -> None:
    """Return a report of entries, queries, feedback and upcoming expiries. For admins."""
