"""The commands `rag-assets experience`.

The JSON output equals the responses of the endpoints below `/rag/experience`. Commands import the
system's services where they use them, so that help is printed quickly.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar
from uuid import UUID

import typer
from pydantic import BaseModel, TypeAdapter, ValidationError

from rag_assets.cli.arguments import Json, TenantArgument
from rag_assets.cli.output import print_json, print_table, progress, say, warn
from rag_assets.cli.session import Session, operator, with_reading_session, with_session
from rag_assets.common.errors import InvalidRequest
from rag_assets.common.invalid_values import describe_first_problem

if TYPE_CHECKING:
    from rag_assets.api.experience_responses import Answer, Pattern, PatternEntry, UnmatchedName
    from rag_assets.systems.experience.model import EntryDraft
    from rag_assets.systems.experience.questions import Questions
    from rag_assets.systems.experience.service import Experience

_STANDARD_INPUT = "-"
_PAGE_ROWS = 200
_PATTERNS_AT_ONCE = 5_000
_Draft = TypeVar("_Draft", bound=BaseModel)
_T = TypeVar("_T")

_Project = Annotated[str | None, typer.Option("--project", help="Id of the asking project.")]
_Agent = Annotated[str | None, typer.Option("--agent", help="Type of the agent.")]
_TaskType = Annotated[str | None, typer.Option("--task-type", help="Type of the task.")]
_Technology = Annotated[str | None, typer.Option("--technology", help="Technology of the task.")]
_PatternArgument = Annotated[str, typer.Argument(metavar="PATTERN", help="Id of the pattern.")]

app = typer.Typer(help="Solutions from past projects, for later projects.", no_args_is_help=True)


@app.command("project")
@with_session
def put_project(
    session: Session,
    tenant: TenantArgument,
    project: Annotated[str, typer.Argument(metavar="UUID", help="Id of the project.")],
    name: Annotated[str, typer.Option("--name", help="Name of the project.")],
    state: Annotated[
        Literal["active", "completed", "cancelled"], typer.Option("--state", help="Its state.")
    ] = "active",
    as_json: Json = False,
) -> None:
    """Create a project that contributes entries, or change its name and state."""
    from rag_assets.systems.experience.model import ProjectDraft

    draft = _validate(ProjectDraft, {"name": name, "state": state})
    created_project = _open_experience(session).put_project(tenant, _parse_id(project), draft)
    _print_value(
        created_project,
        f"Project {created_project.name}: {created_project.state}.",
        as_json=as_json,
    )


@app.command("capture")
@with_session
def capture(
    session: Session,
    tenant: TenantArgument,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="One JSON entry per line; - reads standard input."),
    ],
    as_json: Json = False,
) -> None:
    """Stage entries; if one of them is invalid, none is staged."""
    from rag_assets.systems.experience.ranking import determine_quality

    experience = _open_experience(session)
    experience.get_record(tenant)
    drafts = list(_read_drafts(file))
    captured = [experience.capture(tenant, draft, by=operator()) for draft in drafts]
    if as_json:
        entries = [
            {
                "id": str(result.entry.id),
                "new": result.new,
                "quality": determine_quality(result.entry.entry_type),
                "staged": result.staged,
                "masked": result.masked,
            }
            for result in captured
        ]
        print_json({"entries": entries})
        return
    new = sum(result.new for result in captured)
    say(f"{new} entries staged; {len(captured) - new} were already stored.")
    if masked := sum(bool(result.masked) for result in captured):
        warn(
            f"credentials in {masked} of these entries were replaced by the names of the rules"
            " that found them"
        )
    say(f"`rag-assets experience checkpoint {tenant}` requests their embedding.")


@app.command("checkpoint")
@with_session
def request_checkpoint(
    session: Session,
    tenant: TenantArgument,
    project: Annotated[
        str | None, typer.Option("--project", help="Id of the project; by default all.")
    ] = None,
    type_: Annotated[
        Literal["phase_completion", "project_completion", "cancellation", "manual"],
        typer.Option("--type", help="Type of the checkpoint."),
    ] = "manual",
    as_json: Json = False,
) -> None:
    """Request that the next sync embeds the staged entries."""
    from rag_assets.systems.experience.model import CheckpointDraft

    draft = _validate(CheckpointDraft, {"checkpoint_type": type_, "project_id": project})
    requested = _open_experience(session).request_checkpoint(tenant, draft, by=operator())
    if as_json:
        print_json({"checkpoint_id": str(requested.id), **_to_plain(requested)})
        return
    text = f"Checkpoint {requested.id} includes {requested.staged} entries."
    if requested.staged:
        text += f" `rag-assets sync {tenant}` embeds them, or the daemon within a minute."
    say(text)


@app.command("checkpoints")
@with_reading_session
def show_checkpoints(
    session: Session,
    tenant: TenantArgument,
    checkpoint: Annotated[
        str | None,
        typer.Argument(
            metavar="[CHECKPOINT]", help="Id of a checkpoint; by default, the latest are listed."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the latest checkpoints with their progress, or show one."""
    experience = _open_experience(session)
    if checkpoint is not None:
        state = experience.get_checkpoint(tenant, _parse_id(checkpoint))
        text = f"{state.state}: {state.embedded} of {state.staged} entries are found, "
        text += f"{state.merged} merged, {state.failed} failed."
        if state.error:
            text += f" {state.error}"
        _print_value(state, text, as_json=as_json)
        return
    latest = experience.checkpoints.list_latest(experience.get_record(tenant).id, _PAGE_ROWS)
    if as_json:
        print_json({"checkpoints": [_to_plain(checkpoint_row) for checkpoint_row in latest]})
        return
    columns = ("id", "type", "state", "staged", "embedded", "merged", "failed", "error")
    print_table(
        columns,
        [
            (state.id, state.checkpoint_type, *(getattr(state, name) or "" for name in columns[2:]))
            for state in latest
        ],
    )


@app.command("task")
@with_reading_session
def ask_task(
    session: Session,
    tenant: TenantArgument,
    description: Annotated[str, typer.Argument(help="Description of the task.")],
    agent: _Agent = None,
    task_type: _TaskType = None,
    technology: _Technology = None,
    most: Annotated[
        int, typer.Option("--max", min=1, max=5, help="Maximum number of patterns.")
    ] = 5,
    project: _Project = None,
    as_json: Json = False,
) -> None:
    """Find patterns of past projects for a similar task."""
    from rag_assets.search.model import Caller
    from rag_assets.systems.experience.model import TaskQuestion

    values = {
        "task_description": description,
        "agent_type": agent,
        "task_type": task_type,
        "technology": technology,
        "max_results": most,
        "project_id": project,
    }
    question = _validate(TaskQuestion, values)
    record = _open_experience(session).get_record(tenant)
    answer = _answer_question(
        session, lambda questions: questions.answer_task(record, question, Caller())
    )
    _print_answer(answer, as_json=as_json)


@app.command("failure")
@with_reading_session
def ask_failure(
    session: Session,
    tenant: TenantArgument,
    description: Annotated[str, typer.Argument(help="Description of the failure.")],
    error: Annotated[str | None, typer.Option("--error", help="The error message.")] = None,
    agent: _Agent = None,
    task_type: _TaskType = None,
    project: _Project = None,
    as_json: Json = False,
) -> None:
    """Find solutions of similar failures."""
    from rag_assets.search.model import Caller
    from rag_assets.systems.experience.model import FailureQuestion

    values = {
        "failure_description": description,
        "error_message": error,
        "agent_type": agent,
        "task_type": task_type,
        "project_id": project,
    }
    question = _validate(FailureQuestion, values)
    record = _open_experience(session).get_record(tenant)
    answer = _answer_question(
        session, lambda questions: questions.answer_failure(record, question, Caller())
    )
    _print_answer(answer, as_json=as_json)


@app.command("context")
@with_reading_session
def write_context(
    session: Session,
    tenant: TenantArgument,
    description: Annotated[str, typer.Argument(help="Description of the task.")],
    basic: Annotated[
        Path | None, typer.Option("--basic", help="File with the basic context.")
    ] = None,
    agent: _Agent = None,
    task_type: _TaskType = None,
    technology: _Technology = None,
    tokens: Annotated[
        int,
        typer.Option("--tokens", min=200, max=8_000, help="Maximum size of the block, in tokens."),
    ] = 1_500,
    project: _Project = None,
    as_json: Json = False,
) -> None:
    """Write an agent's context for a task, with patterns of past projects."""
    from rag_assets.search.model import Caller
    from rag_assets.systems.experience.model import ContextQuestion

    values = {
        "task": {"description": description, "type": task_type, "technology": technology},
        "agent_type": agent,
        "token_budget": tokens,
        "project_id": project,
        "basic_context": "" if basic is None else _read_file(basic),
    }
    question = _validate(ContextQuestion, values)
    record = _open_experience(session).get_record(tenant)
    context = _answer_question(
        session, lambda questions: questions.build_context(record, question, Caller())
    )
    if context.reason is not None:
        warn(f"the context has no patterns: {context.reason.replace('-', ' ')}")
    _warn_of_names(context.warnings)
    _print_value(context, context.context or "No pattern was found for this task.", as_json=as_json)
    if not as_json and context.query_id is not None:
        # The ids go to standard error, because standard output contains only the agent's context.
        patterns = ", ".join(str(pattern.id) for pattern in context.patterns)
        progress(f"question {context.query_id}" + (f", patterns {patterns}" if patterns else ""))


@app.command("feedback")
@with_session
def give_feedback(
    session: Session,
    tenant: TenantArgument,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Id of the question.")],
    pattern: _PatternArgument,
    outcome: Annotated[Literal["helped", "did_not_help"], typer.Argument(help="The outcome.")],
    as_json: Json = False,
) -> None:
    """Report whether a pattern in an answer helped."""
    from rag_assets.systems.experience.model import FeedbackDraft

    values = {"query_id": query, "pattern_id": pattern, "outcome": outcome}
    draft = _validate(FeedbackDraft, values)
    counts = _open_experience(session).record_feedback(tenant, draft, by=operator())
    text = f"{counts.success_count} successes, {counts.failure_count} failures."
    _print_value(counts, text, as_json=as_json)


@app.command("patterns")
@with_reading_session
def show_patterns(
    session: Session,
    tenant: TenantArgument,
    pattern: Annotated[
        str | None, typer.Argument(metavar="[PATTERN]", help="Id of a pattern; by default all.")
    ] = None,
    order: Annotated[
        Literal["id", "use", "newest"],
        typer.Option("--order", help="By id, by use (most answers first), or newest first."),
    ] = "id",
    search: Annotated[
        str | None,
        typer.Option("--search", help="Words that a single entry of the pattern must contain."),
    ] = None,
    type_: Annotated[
        Literal["failure_solution", "gate_rejection", "gate_approval"] | None,
        typer.Option("--type", help="Type of the entries."),
    ] = None,
    agent: _Agent = None,
    task_type: _TaskType = None,
    technology: _Technology = None,
    project: Annotated[
        str | None, typer.Option("--project", help="Id of a contributing project.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List, search and filter patterns, or show one with its entries and merges."""
    if pattern is not None:
        _print_details(session, tenant, pattern, as_json=as_json)
        return
    values = {
        "order": order,
        "search": search,
        "entry_type": type_,
        "agent_type": agent,
        "task_type": task_type,
        "technology": technology,
        "project_id": project,
    }
    _list_patterns(session, tenant, values, as_json=as_json)


def _list_patterns(
    session: Session, tenant: str, values: Mapping[str, Any], *, as_json: bool
) -> None:
    """Print all patterns that match a filter."""
    from rag_assets.systems.experience.model import PatternFilter

    experience, pattern_filter = _open_experience(session), _validate(PatternFilter, values)
    record = experience.get_record(tenant)
    patterns: list[Pattern] = []
    while page := experience.administration.list_patterns(
        record,
        after=patterns[-1].id if patterns else None,
        limit=_PATTERNS_AT_ONCE,
        pattern_filter=pattern_filter,
    ):
        patterns += page
        if len(page) < _PATTERNS_AT_ONCE:
            break
    if not patterns:
        _warn_of_names(experience.administration.find_unmatched_names(record, pattern_filter))
    if as_json:
        print_json({"patterns": [_to_plain(pattern) for pattern in patterns]})
        return
    _print_patterns(patterns)


def _print_details(session: Session, tenant: str, pattern: str, *, as_json: bool) -> None:
    """Print one pattern with its entries and merges."""
    experience = _open_experience(session)
    details = experience.administration.read_details(
        experience.get_record(tenant), _parse_id(pattern)
    )
    if as_json:
        print_json(_to_plain(details))
        return
    _print_patterns([details.pattern])
    _print_entries(details.entries)
    for merge in details.merges:
        cosines = ""
        if merge.problem_cosine is not None and merge.solution_cosine is not None:
            cosines = f", cosines {merge.problem_cosine:.3f} and {merge.solution_cosine:.3f}"
        state = f", split {merge.split_at} by {merge.split_by}" if merge.split_at else ""
        merged = f"{merge.way}, {merge.merged_at} by {merge.merged_by}"
        say(f"Merge of entry {merge.entry_id}: {merged}{cosines}{state}")
        _print_texts((("Problem", merge.problem), ("Solution", merge.solution)))
        if merge.other_id is not None:
            say(f"   with entry {merge.other_id}")
            _print_texts((("Problem", merge.other_problem), ("Solution", merge.other_solution)))


@app.command("merge")
@with_session
def merge(
    session: Session,
    tenant: TenantArgument,
    pattern: _PatternArgument,
    into: Annotated[str, typer.Argument(metavar="INTO", help="Id of the other pattern.")],
    yes: Annotated[
        bool, typer.Option("--yes", help="Merge them even if their problems differ.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Merge a pattern into a different one; requires --yes if their problems differ."""
    from rag_assets.systems.experience.errors import ProblemsDiffer

    experience = _open_experience(session)
    record, ids = experience.get_record(tenant), (_parse_id(pattern), _parse_id(into))
    try:
        merged = experience.administration.merge(record, *ids, by=operator(), confirmed=yes)
    except ProblemsDiffer as error:
        if not as_json:
            details = [experience.administration.read_details(record, id_) for id_ in ids]
            _print_patterns([detail.pattern for detail in details])
        raise ProblemsDiffer(
            error.message,
            hint="compare both patterns, then run the command with --yes to merge them",
        ) from None
    if as_json:
        print_json(_to_plain(merged))
        return
    say(f"Pattern {into} now has {merged.pattern.success_count} successes, from these entries:")
    _print_entries(merged.entries)
    say(f"`rag-assets experience split {tenant} {into} ENTRY` splits an entry off again.")


@app.command("split")
@with_session
def split(
    session: Session,
    tenant: TenantArgument,
    pattern: _PatternArgument,
    entry: Annotated[str, typer.Argument(metavar="ENTRY", help="Id of the entry.")],
    as_json: Json = False,
) -> None:
    """Move an entry out of a pattern, into a new pattern."""
    experience = _open_experience(session)
    record = experience.get_record(tenant)
    split_pattern = experience.administration.split(
        record, _parse_id(pattern), _parse_id(entry), by=operator()
    )
    if as_json:
        print_json(_to_plain(split_pattern))
        return
    say(
        f"The entry now belongs to pattern {split_pattern.id}, with all entries of the same manual"
        " merge:"
    )
    _print_entries(split_pattern.entries)
    say(f"`rag-assets experience merge {tenant} {split_pattern.id} {pattern}` undoes the split.")


@app.command("retract")
@with_session
def retract(
    session: Session,
    tenant: TenantArgument,
    entry: Annotated[str | None, typer.Option("--entry", help="Id of one entry.")] = None,
    project: Annotated[
        str | None, typer.Option("--project", help="Id of a project; retracts all its entries.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option("--token", help="Id of a token; retracts all entries captured with it."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Retract entries: searches omit them immediately, and the next sync deletes them."""
    from rag_assets.systems.experience.model import RetractDraft

    experience = _open_experience(session)
    record = experience.get_record(tenant)
    if entry is not None:
        experience.administration.delete_entry(record, _parse_id(entry), by=operator())
        count = 1
    else:
        draft = _validate(RetractDraft, {"project_id": project, "token": token})
        count = experience.administration.retract(record, draft, by=operator())
    if as_json:
        print_json({"entries": count})
        return
    say(f"Searches no longer find {count} entries; the next sync deletes them from every store.")


@app.command("report")
@with_reading_session
def report(session: Session, tenant: TenantArgument, as_json: Json = False) -> None:
    """Report entries, questions, feedback and upcoming expiries."""
    experience = _open_experience(session)
    figures = _to_plain(experience.administration.build_report(experience.get_record(tenant)))
    if as_json:
        print_json(figures)
        return
    for name, value in figures.items():
        shown_value = (
            ", ".join(f"{key} {count}" for key, count in value.items())
            if isinstance(value, dict)
            else value
        )
        say(f"{name.replace('_', ' ')}: {'-' if shown_value in (None, '') else shown_value}")


@app.command("assess")
@with_reading_session
def assess(
    session: Session,
    tenant: TenantArgument,
    patterns: Annotated[
        int,
        typer.Option(
            "--patterns",
            min=1,
            max=1_000,
            help="Number of patterns to grade, with about 3 calls each.",
        ),
    ] = 10,
    after: Annotated[
        str | None,
        typer.Option("--after", help="Id of the last pattern of the previous assessment."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Grade the relevance, clarity and worth of patterns with the tenant's chat model."""
    from rag_assets.systems.experience.assessment import assess_patterns, print_assessment

    experience = _open_experience(session)
    record = experience.get_record(tenant)
    chosen_patterns = experience.administration.list_patterns(
        record, after=None if after is None else _parse_id(after), limit=patterns
    )
    if not chosen_patterns:
        say("The tenant has no pattern to assess.")
        return
    result = asyncio.run(assess_patterns(session, record, chosen_patterns))
    print_assessment(result, chosen_patterns, as_json=as_json)


def _open_experience(session: Session) -> Experience:
    from rag_assets.privacy.masker import get_masker
    from rag_assets.systems.experience.service import Experience

    return Experience(session.catalog, get_masker(session.settings.local))


def _answer_question(session: Session, ask: Callable[[Questions], Awaitable[_T]]) -> _T:
    from rag_assets.search import AsyncRetriever
    from rag_assets.systems.experience.questions import Questions

    async def answer() -> _T:
        retriever = AsyncRetriever(session.catalog, session.store, session.embedders)
        try:
            return await ask(Questions(session.catalog, retriever))
        finally:
            await retriever.close()

    return asyncio.run(answer())


def _read_drafts(file: Path) -> Iterator[EntryDraft]:
    """Yield the entries of a file.

    Raises:
        InvalidRequest, NotVerified: an entry is invalid; the error names the line.
    """
    from rag_assets.systems.experience.model import (
        EntryDraft,
        find_entry_problems,
        require_no_problem,
        require_verified,
    )

    for number, line in enumerate(_read_file(file).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            draft = EntryDraft.model_validate_json(line)
        except ValidationError as error:
            raise InvalidRequest(
                f"line {number}: {describe_first_problem(error)}", hint="correct this line"
            ) from None
        try:
            require_no_problem(find_entry_problems(draft))
            require_verified(draft)
        except InvalidRequest as error:
            raise InvalidRequest(f"line {number}: {error.message}", hint=error.hint) from None
        yield draft


def _read_file(file: Path) -> str:
    try:
        if str(file) == _STANDARD_INPUT:
            return sys.stdin.read()
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise InvalidRequest(
            f"{file} cannot be read: {reason}", hint="choose a readable UTF-8 file"
        ) from None


def _validate(model: type[_Draft], values: Mapping[str, Any]) -> _Draft:
    from rag_assets.systems.experience.model import validate_fields

    return validate_fields(model, values, hint="correct this argument")


def _parse_id(text: str) -> UUID:
    """Return the UUID in an argument."""
    try:
        return UUID(text)
    except ValueError:
        raise InvalidRequest(
            f"{text!r} is not a valid UUID",
            hint="copy the id from the output of a command, e.g. `rag-assets experience patterns`",
        ) from None


def _print_answer(answer: Answer, *, as_json: bool) -> None:
    _warn_of_names(answer.warnings)
    if as_json:
        print_json(_to_plain(answer))
    elif answer.disabled:
        warn("the tenant is disabled, so no search was run")
    else:
        _print_patterns(answer.patterns)
        say(f"question {answer.query_id}")


def _warn_of_names(unmatched: Iterable[UnmatchedName]) -> None:
    for unmatched_name in unmatched:
        warn(f"{unmatched_name.field}: {unmatched_name.problem}")


def _print_patterns(patterns: list[Pattern] | tuple[Pattern, ...]) -> None:
    if not patterns:
        say("No pattern was found.")
    for number, pattern in enumerate(patterns, start=1):
        score = "" if pattern.score is None else f", cosine {pattern.score:.3f}"
        counts = f"{pattern.success_count} successes, {pattern.failure_count} failures"
        if pattern.shown_count is not None:
            counts += f", in {pattern.shown_count} answers"
        say(f"{number}. {pattern.id} ({pattern.label}; {counts}; {pattern.quality}{score})")
        _print_texts(
            (
                ("Problem", pattern.problem),
                ("Solution", pattern.solution),
                ("When to try", pattern.when_to_try),
            )
        )
        if pattern.stale_paths:
            say(f"   Changed since: {', '.join(pattern.stale_paths)}")


def _print_entries(entries: Iterable[PatternEntry]) -> None:
    for entry in entries:
        times = f"embedded {entry.embedded_at}, expires {entry.expires_at}"
        say(f"Entry {entry.id}: project {entry.project_id}, {times}")
        _print_texts((("Problem", entry.problem), ("Solution", entry.solution)))


def _print_texts(texts: Iterable[tuple[str, str | None]]) -> None:
    for name, text in texts:
        if text is not None:
            say(indent(f"{name}: {text}", "   "))


def _print_value(value: object, text: str, *, as_json: bool) -> None:
    if as_json:
        print_json(_to_plain(value))
    else:
        say(text)


def _to_plain(value: object) -> Any:
    return TypeAdapter(type(value)).dump_python(value, mode="json")
