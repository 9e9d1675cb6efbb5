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
from rag_assets.client.calls import Call, Pages

_ADDRESS = "/rag/experience"
_PAGE = 100
PatternOrder: TypeAlias = Literal["id", "use", "newest"]


def put_project(
    project: UUID | str, name: str, *, state: ProjectState = "active", tenant: str | None = None
) -> Call[Project]:
    """Create a project that contributes entries, or change its name and state."""
    return Call(
        "PUT",
        f"{_ADDRESS}/projects/{{project}}",
        Project,
        named={"project": str(project)},
        parameters={"tenant": tenant},
        body={"name": name, "state": state},
    )


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
) -> Call[CapturedEntry]:
    """Capture an entry of a project. It stays staged until a checkpoint embeds it.

    Args:
        entry_type: determines which other arguments are required.
        project_id: id of the project that contributes the entry.
        about: locations in the code, each with a path and optionally a symbol.
        external_id: id of the request, chosen by the caller, which makes it repeatable.
    """
    values = {
        "agent_type": agent_type,
        "task_type": task_type,
        "technology": technology,
        "failure_description": failure_description,
        "error_message": error_message,
        "solution_steps": solution_steps,
        "success_verified": success_verified,
        "gate_type": gate_type,
        "human_feedback": human_feedback,
        "revision_approach": revision_approach,
        "approved_approach": approved_approach,
        "when_to_try": when_to_try,
        "about": [dict(location) for location in about] or None,
        "external_id": external_id,
    }
    body = {"entry_type": entry_type, "project_id": str(project_id), **_drop_none(values)}
    return _post("entries", CapturedEntry, body, tenant, repeatable=external_id is not None)


def request_checkpoint(
    checkpoint_type: CheckpointType,
    *,
    project_id: UUID | str | None = None,
    external_id: str | None = None,
    tenant: str | None = None,
) -> Call[RequestedCheckpoint]:
    """Request that a project's staged entries are embedded in the background.

    Args:
        checkpoint_type: the event that causes the checkpoint.
        project_id: id of the project; None, for all projects, requires a manual checkpoint.
        external_id: id of the request, chosen by the caller, which makes it repeatable.
    """
    body = {
        "checkpoint_type": checkpoint_type,
        **_drop_none({"project_id": _to_text(project_id), "external_id": external_id}),
    }
    return _post(
        "checkpoints", RequestedCheckpoint, body, tenant, repeatable=external_id is not None
    )


def checkpoint(checkpoint_id: UUID | str, *, tenant: str | None = None) -> Call[CheckpointProgress]:
    """Return the progress of a checkpoint."""
    return Call(
        "GET",
        f"{_ADDRESS}/checkpoints/{{checkpoint}}",
        CheckpointProgress,
        named={"checkpoint": str(checkpoint_id)},
        parameters={"tenant": tenant},
    )


def experience_for_task(
    task_description: str,
    *,
    agent_type: str | None = None,
    task_type: str | None = None,
    technology: str | None = None,
    max_results: int | None = None,
    project_id: UUID | str | None = None,
    tenant: str | None = None,
) -> Call[Answer]:
    """Find patterns of past projects for a task.

    Args:
        agent_type, task_type, technology: filters; None matches all entries.
        max_results: maximum number of patterns, 1 to 5.
        project_id: id of the asking project, whose own entries are excluded.
    """
    values = {
        "agent_type": agent_type,
        "task_type": task_type,
        "technology": technology,
        "max_results": max_results,
        "project_id": _to_text(project_id),
    }
    return _post(
        "task", Answer, {"task_description": task_description, **_drop_none(values)}, tenant
    )


def experience_for_failure(
    failure_description: str,
    *,
    error_message: str | None = None,
    agent_type: str | None = None,
    task_type: str | None = None,
    project_id: UUID | str | None = None,
    tenant: str | None = None,
) -> Call[Answer]:
    """Find solutions of similar failures; see experience_for_task for the arguments."""
    values = {
        "error_message": error_message,
        "agent_type": agent_type,
        "task_type": task_type,
        "project_id": _to_text(project_id),
    }
    body = {"failure_description": failure_description, **_drop_none(values)}
    return _post("failure", Answer, body, tenant)


def experience_context(
    task: Mapping[str, Any],
    *,
    agent_type: str | None = None,
    basic_context: str = "",
    token_budget: int | None = None,
    project_id: UUID | str | None = None,
    tenant: str | None = None,
) -> Call[Context]:
    """Return an agent's context for a task, with a block of patterns.

    Args:
        task: the task, with its description and optionally its type and technology.
        basic_context: text that the agent always gets.
        token_budget: maximum size of the block in cl100k_base tokens, 200 to 8,000.
        project_id: id of the asking project.
    """
    values = {
        "agent_type": agent_type,
        "token_budget": token_budget,
        "project_id": _to_text(project_id),
    }
    body = {"task": dict(task), "basic_context": basic_context, **_drop_none(values)}
    return _post("context", Context, body, tenant)


def experience_feedback(
    query_id: UUID | str, pattern_id: UUID | str, outcome: Outcome, *, tenant: str | None = None
) -> Call[FeedbackCounts]:
    """Record whether a pattern helped; later feedback replaces earlier feedback."""
    body = {"query_id": str(query_id), "pattern_id": str(pattern_id), "outcome": outcome}
    return _post("feedback", FeedbackCounts, body, tenant)


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
    limit: int = _PAGE,
    tenant: str | None = None,
) -> Call[Patterns]:
    """Return a page of patterns. For admins.

    Args:
        order: order of the patterns: by id; by number of answers, highest first; or newest first.
        search: words that an entry of the pattern must contain, or the id of a pattern.
        entry_type, agent_type, task_type, technology, project_id: values that an entry of the
            pattern must have.
        after: the `next` of the previous page, in the same order.
        limit: maximum number of patterns.
    """
    return Call(
        "GET",
        f"{_ADDRESS}/patterns",
        Patterns,
        parameters={
            "tenant": tenant,
            "order": order,
            "search": search,
            "entry_type": entry_type,
            "agent_type": agent_type,
            "task_type": task_type,
            "technology": technology,
            "project_id": _to_text(project_id),
            "after": _to_text(after),
            "limit": limit,
        },
    )


def all_patterns(
    *, order: PatternOrder = "id", page: int = _PAGE, tenant: str | None = None
) -> Pages[Patterns, Pattern]:
    """Iterate over all patterns. For admins.

    Args:
        order: see patterns.
        page: number of patterns in each request.
    """
    first = patterns(order=order, limit=page, tenant=tenant)
    return Pages(first, lambda fetched: fetched.patterns, lambda fetched: _to_text(fetched.next))


def pattern(pattern_id: UUID | str, *, tenant: str | None = None) -> Call[PatternDetails]:
    """Return a pattern with its entries and merges. For admins."""
    return Call(
        "GET",
        f"{_ADDRESS}/patterns/{{pattern}}",
        PatternDetails,
        named={"pattern": str(pattern_id)},
        parameters={"tenant": tenant},
    )


def merge_pattern(
    pattern_id: UUID | str, into: UUID | str, *, confirm: bool = False, tenant: str | None = None
) -> Call[PatternDetails]:
    """Merge a pattern into another pattern. For admins.

    Args:
        confirm: merge the patterns even if their problems differ.
    """
    return Call(
        "POST",
        f"{_ADDRESS}/patterns/{{pattern}}/merge",
        PatternDetails,
        named={"pattern": str(pattern_id)},
        body=_drop_none({"tenant": tenant, "into": str(into), "confirm": confirm}),
        repeatable=False,
    )


def split_pattern(
    pattern_id: UUID | str, entry_id: UUID | str, *, tenant: str | None = None
) -> Call[SplitPattern]:
    """Move an entry out of a pattern into a new pattern. For admins."""
    return Call(
        "POST",
        f"{_ADDRESS}/patterns/{{pattern}}/split",
        SplitPattern,
        named={"pattern": str(pattern_id)},
        body=_drop_none({"tenant": tenant, "entry_id": str(entry_id)}),
        repeatable=False,
    )


def delete_entry(entry_id: UUID | str, *, tenant: str | None = None) -> Call[Retracted]:
    """Retract an entry; searches omit it immediately. For admins."""
    return Call(
        "DELETE",
        f"{_ADDRESS}/entries/{{entry}}",
        Retracted,
        named={"entry": str(entry_id)},
        parameters={"tenant": tenant},
    )


def retract_experience(
    *,
    project_id: UUID | str | None = None,
    token: str | None = None,
    tenant: str | None = None,
) -> Call[Retracted]:
    """Retract all entries of a project, or all entries captured with a token. For admins.

    Args:
        token: id of the token, or its full name as in a receipt.
    """
    body = _drop_none({"project_id": _to_text(project_id), "token": token})
    return _post("retract", Retracted, body, tenant)


def experience_report(*, tenant: str | None = None) -> Call[Report]:
    """Return a report of entries, queries, feedback and upcoming expiries. For admins."""
    return Call("GET", f"{_ADDRESS}/report", Report, parameters={"tenant": tenant})


def _post(
    path: str, answer: Any, body: Mapping[str, Any], tenant: str | None, *, repeatable: bool = True
) -> Call[Any]:
    return Call(
        "POST",
        f"{_ADDRESS}/{path}",
        answer,
        body=body if tenant is None else {"tenant": tenant, **body},
        repeatable=repeatable,
    )


def _drop_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _to_text(value: UUID | str | None) -> str | None:
    return None if value is None else str(value)
