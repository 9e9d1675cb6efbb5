"""MCP tools for orchestrators."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, Literal, TypeVar
from uuid import UUID

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from rag_assets.api.experience_responses import (
    Answer,
    CheckpointProgress,
    CheckpointType,
    Context,
    Pattern,
    ProjectState,
)
from rag_assets.common.errors import InvalidRequest
from rag_assets.mcp.tools import Knowledge, Tool, current_message
from rag_assets.privacy.masker import get_masker
from rag_assets.search.contexts import escape_imitations
from rag_assets.search.model import Caller, Role
from rag_assets.storage.catalog.tenants.table import TenantRecord
from rag_assets.systems.experience.model import (
    About,
    CheckpointDraft,
    ContextQuestion,
    EntryDraft,
    FailureQuestion,
    FeedbackDraft,
    ProjectDraft,
    TaskQuestion,
    validate_fields,
)
from rag_assets.systems.experience.questions import Questions
from rag_assets.systems.experience.ranking import determine_quality
from rag_assets.systems.experience.service import Experience

_ROLES: frozenset[Role] = frozenset({"orchestrator"})
_ANSWER = TypeAdapter(Answer)
_CONTEXT = TypeAdapter(Context)
_PROGRESS = TypeAdapter(CheckpointProgress)
_UUID = TypeAdapter(UUID)
_Model = TypeVar("_Model", bound=BaseModel)
_Question = TypeVar("_Question")
_T = TypeVar("_T")
_NAME = Field(max_length=100)
_OptionalName = Annotated[str | None, _NAME]
_Text = Annotated[str, Field(max_length=20_000)]
_OptionalText = Annotated[str | None, Field(max_length=20_000)]


def _build_project_tool(knowledge: Knowledge) -> Callable[..., Awaitable[str]]:
    async def experience_project(
        project_id: str, name: Annotated[str, Field(max_length=256)], state: ProjectState = "active"
    ) -> str:
        draft = _validate(ProjectDraft, {"name": name, "state": state})
        id_ = _parse_id("project_id", project_id)
        project = await _run(
            knowledge,
            lambda experience, tenant, caller: experience.put_project(tenant, id_, draft, caller),
        )
        return json.dumps({"id": str(project.id), "name": project.name, "state": project.state})

    return experience_project


def _build_checkpoint_tool(knowledge: Knowledge) -> Callable[..., Awaitable[str]]:
    async def experience_checkpoint(
        checkpoint_type: CheckpointType,
        project_id: str | None = None,
        external_id: Annotated[str | None, Field(max_length=200)] = None,
    ) -> str:
        draft = _validate(CheckpointDraft, locals())
        checkpoint = await _run(
            knowledge,
            lambda experience, tenant, caller: experience.request_checkpoint(
                tenant, draft, by=caller.name, caller=caller
            ),
        )
        return json.dumps({"checkpoint_id": str(checkpoint.id), "staged": checkpoint.staged})

    return experience_checkpoint


def _build_progress_tool(knowledge: Knowledge) -> Callable[..., Awaitable[str]]:
    async def experience_checkpoint_progress(checkpoint_id: str) -> str:
        id_ = _parse_id("checkpoint_id", checkpoint_id)
        checkpoint = await _run(
            knowledge,
            lambda experience, tenant, caller: experience.get_checkpoint(tenant, id_, caller),
        )
        return _PROGRESS.dump_json(checkpoint.progress).decode()

    return experience_checkpoint_progress


def _build_context_tool(knowledge: Knowledge) -> Callable[..., Awaitable[str]]:
    async def experience_context(
        task_description: _Text,
        agent_type: _OptionalName = None,
        task_type: _OptionalName = None,
        technology: _OptionalName = None,
        basic_context: Annotated[str, Field(max_length=200_000)] = "",
        token_budget: Annotated[int, Field(ge=200, le=8_000)] = 1_500,
        project_id: str | None = None,
    ) -> str:
        task = {"description": task_description, "type": task_type, "technology": technology}
        arguments: dict[str, Any] = {
            "task": task,
            "agent_type": agent_type,
            "project_id": project_id,
            "basic_context": basic_context,
            "token_budget": token_budget,
        }
        question = _validate(ContextQuestion, arguments)
        context = await _ask(knowledge, Questions.build_context, question)
        shown_context = replace(context, patterns=_escape_patterns(context.patterns))
        return _CONTEXT.dump_json(shown_context, exclude_none=True).decode()

    return experience_context


def _build_task_tool(knowledge: Knowledge) -> Callable[..., Awaitable[str]]:
    async def experience_for_task(
        task_description: _Text,
        agent_type: _OptionalName = None,
        task_type: _OptionalName = None,
        technology: _OptionalName = None,
        max_results: Annotated[int, Field(ge=1, le=5)] = 5,
        project_id: str | None = None,
    ) -> str:
        question = _validate(TaskQuestion, locals())
        return _render_answer(await _ask(knowledge, Questions.answer_task, question))

    return experience_for_task


def _build_failure_tool(knowledge: Knowledge) -> Callable[..., Awaitable[str]]:
    async def experience_for_failure(
        failure_description: _Text,
        error_message: _OptionalText = None,
        agent_type: _OptionalName = None,
        task_type: _OptionalName = None,
        project_id: str | None = None,
    ) -> str:
        question = _validate(FailureQuestion, locals())
        return _render_answer(await _ask(knowledge, Questions.answer_failure, question))

    return experience_for_failure


def _build_capture_tool(knowledge: Knowledge) -> Callable[..., Awaitable[str]]:
    async def experience_capture(
        entry_type: Literal["failure_solution", "gate_rejection", "gate_approval"],
        project_id: str,
        agent_type: _OptionalName = None,
        task_type: _OptionalName = None,
        technology: _OptionalName = None,
        failure_description: _OptionalText = None,
        error_message: _OptionalText = None,
        solution_steps: _OptionalText = None,
        success_verified: bool | None = None,
        gate_type: Annotated[str | None, Field(max_length=50)] = None,
        human_feedback: _OptionalText = None,
        revision_approach: _OptionalText = None,
        approved_approach: _OptionalText = None,
        when_to_try: _OptionalText = None,
        about: Annotated[list[About] | None, Field(max_length=50)] = None,
        external_id: Annotated[str | None, Field(max_length=200)] = None,
    ) -> str:
        draft = _validate(EntryDraft, locals())
        captured = await _run(
            knowledge,
            lambda experience, tenant, caller: experience.capture(
                tenant, draft, by=caller.name, caller=caller
            ),
        )
        return json.dumps(
            {
                "id": str(captured.entry.id),
                "quality": determine_quality(captured.entry.entry_type),
                "staged": captured.staged,
                "masked": list(captured.masked),
            }
        )

    return experience_capture


def _build_feedback_tool(knowledge: Knowledge) -> Callable[..., Awaitable[str]]:
    async def experience_feedback(
        query_id: str, pattern_id: str, outcome: Literal["helped", "did_not_help"]
    ) -> str:
        draft = _validate(FeedbackDraft, locals())
        counts = await _run(
            knowledge,
            lambda experience, tenant, caller: experience.record_feedback(
                tenant, draft, by=caller.name
            ),
        )
        return json.dumps(
            {
                "pattern_id": str(counts.pattern_id),
                "success_count": counts.success_count,
                "failure_count": counts.failure_count,
            }
        )

    return experience_feedback


def _declare_tool(
    name: str, description: str, function: Callable[[Knowledge], Callable[..., Awaitable[str]]]
) -> Tool:
    return Tool(name=name, description=description, function=function, roles=_ROLES)


PROJECT = _declare_tool(
    "experience_project",
    "Create a project that contributes entries, or change its name and state.",
    _build_project_tool,
)
CHECKPOINT = _declare_tool(
    "experience_checkpoint",
    (
        "Embed the staged entries of a project in the background. Call this when a phase or the"
        " project ends or is cancelled. A manual checkpoint without a project includes all your"
        " projects."
    ),
    _build_checkpoint_tool,
)
CHECKPOINT_PROGRESS = _declare_tool(
    "experience_checkpoint_progress",
    "Return whether a checkpoint is done, and how many of its entries searches find.",
    _build_progress_tool,
)
CONTEXT = _declare_tool(
    "experience_context",
    (
        "Write an agent's context for a task: the basic context, followed by a block of patterns"
        " from past projects."
    ),
    _build_context_tool,
)
FOR_TASK = _declare_tool(
    "experience_for_task",
    "Find patterns of past projects for a similar task, best first.",
    _build_task_tool,
)
FOR_FAILURE = _declare_tool(
    "experience_for_failure",
    "Find solutions of similar failures in past projects, best first.",
    _build_failure_tool,
)
CAPTURE = _declare_tool(
    "experience_capture",
    (
        "Stage an entry of a project: a failure with its verified solution, a gate's rejection with"
        " the approved revision, or an approach that passed a gate at the first attempt."
    ),
    _build_capture_tool,
)
FEEDBACK = _declare_tool(
    "experience_feedback",
    "Report whether a pattern in an answer helped.",
    _build_feedback_tool,
)


async def _ask(
    knowledge: Knowledge,
    ask: Callable[[Questions, TenantRecord, _Question, Caller], Awaitable[_T]],
    question: _Question,
) -> _T:
    """Answer a question on behalf of the current message's caller."""

    async def run(_tenant: str, _caller: str | None, work: Callable[[], Any], /) -> Any:
        return await knowledge.in_thread(work)

    record = await _run(knowledge, lambda experience, tenant, _: experience.get_record(tenant))
    questions = Questions(knowledge.reader.catalog, knowledge, run_blocking=run)
    return await ask(questions, record, question, current_message().caller)


async def _run(knowledge: Knowledge, work: Callable[[Experience, str, Caller], _T]) -> _T:
    """Run blocking work for the current message's tenant and caller."""
    message = current_message()
    experience = Experience(knowledge.reader.catalog, knowledge.masker or get_masker(None))
    return await knowledge.in_thread(lambda: work(experience, message.tenant_id, message.caller))


def _render_answer(answer: Answer) -> str:
    """Return an answer as JSON, with imitations of our markers escaped in its texts."""
    shown_answer = replace(answer, patterns=_escape_patterns(answer.patterns))
    return _ANSWER.dump_json(shown_answer, exclude_none=True).decode()


def _escape_patterns(patterns: tuple[Pattern, ...]) -> tuple[Pattern, ...]:
    """Return patterns with escaped imitations of markers in their texts."""
    return tuple(
        replace(
            pattern,
            problem=escape_imitations(pattern.problem),
            solution=escape_imitations(pattern.solution),
            when_to_try=pattern.when_to_try and escape_imitations(pattern.when_to_try),
        )
        for pattern in patterns
    )


def _parse_id(name: str, text: str) -> UUID:
    try:
        return _UUID.validate_python(text)
    except ValidationError:
        raise InvalidRequest(f"{name}: not a valid UUID", hint="correct that field") from None


def _validate(model: type[_Model], variables: Mapping[str, Any]) -> _Model:
    """Return an instance of the model with a tool's arguments, from the tool's `locals()`."""
    arguments = {name: value for name, value in variables.items() if name != "knowledge"}
    return validate_fields(model, arguments, hint="correct that field")
