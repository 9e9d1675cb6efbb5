"""The commands `rag-assets experience` and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from rag_assets.cli.arguments import Json, TenantArgument

app = typer.Typer(help="Solutions from past projects, for later projects.", no_args_is_help=True)

_Project = Annotated[str | None, typer.Option("--project", help="Id of the asking project.")]
_Agent = Annotated[str | None, typer.Option("--agent", help="Type of the agent.")]
_TaskType = Annotated[str | None, typer.Option("--task-type", help="Type of the task.")]
_Technology = Annotated[str | None, typer.Option("--technology", help="Technology of the task.")]
_PatternArgument = Annotated[str, typer.Argument(metavar="PATTERN", help="Id of the pattern.")]


@app.command("project")
def project(
    tenant: TenantArgument,
    project: Annotated[str, typer.Argument(metavar="UUID", help="Id of the project.")],
    name: Annotated[str, typer.Option("--name", help="Name of the project.")],
    state: Annotated[
        Literal["active", "completed", "cancelled"], typer.Option("--state", help="Its state.")
    ] = "active",
    json: Json = False,
) -> None:
    """Create a project that contributes entries, or change its name and state."""
    from rag_assets.systems.experience import command_line

    command_line.put_project(tenant, project, {"name": name, "state": state}, as_json=json)


@app.command("capture")
def capture(
    tenant: TenantArgument,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="One JSON entry per line; - reads standard input."),
    ],
    json: Json = False,
) -> None:
    """Stage entries; if one of them is invalid, none is staged."""
    from rag_assets.systems.experience import command_line

    command_line.capture(tenant, file, as_json=json)


@app.command("checkpoint")
def checkpoint(
    tenant: TenantArgument,
    project: Annotated[
        str | None, typer.Option("--project", help="Id of the project; by default all.")
    ] = None,
    type_: Annotated[
        Literal["phase_completion", "project_completion", "cancellation", "manual"],
        typer.Option("--type", help="Type of the checkpoint."),
    ] = "manual",
    json: Json = False,
) -> None:
    """Request that the next sync embeds the staged entries."""
    from rag_assets.systems.experience import command_line

    values = {"checkpoint_type": type_, "project_id": project}
    command_line.request_checkpoint(tenant, values, as_json=json)


@app.command("checkpoints")
def checkpoints(
    tenant: TenantArgument,
    checkpoint: Annotated[
        str | None,
        typer.Argument(
            metavar="[CHECKPOINT]", help="Id of a checkpoint; by default, the latest are listed."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """List the latest checkpoints with their progress, or show one."""
    from rag_assets.systems.experience import command_line

    if checkpoint is None:
        command_line.list_checkpoints(tenant, as_json=json)
    else:
        command_line.show_checkpoint(tenant, checkpoint, as_json=json)


@app.command("task")
def task(
    tenant: TenantArgument,
    description: Annotated[str, typer.Argument(help="Description of the task.")],
    agent: _Agent = None,
    task_type: _TaskType = None,
    technology: _Technology = None,
    most: Annotated[
        int, typer.Option("--max", min=1, max=5, help="Maximum number of patterns.")
    ] = 5,
    project: _Project = None,
    json: Json = False,
) -> None:
    """Find patterns of past projects for a similar task."""
    from rag_assets.systems.experience import command_line

    values = {
        "task_description": description,
        "agent_type": agent,
        "task_type": task_type,
        "technology": technology,
        "max_results": most,
        "project_id": project,
    }
    command_line.ask_task(tenant, values, as_json=json)


@app.command("failure")
def failure(
    tenant: TenantArgument,
    description: Annotated[str, typer.Argument(help="Description of the failure.")],
    error: Annotated[str | None, typer.Option("--error", help="The error message.")] = None,
    agent: _Agent = None,
    task_type: _TaskType = None,
    project: _Project = None,
    json: Json = False,
) -> None:
    """Find solutions of similar failures."""
    from rag_assets.systems.experience import command_line

    values = {
        "failure_description": description,
        "error_message": error,
        "agent_type": agent,
        "task_type": task_type,
        "project_id": project,
    }
    command_line.ask_failure(tenant, values, as_json=json)


@app.command("context")
def context(
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
    json: Json = False,
) -> None:
    """Write an agent's context for a task, with patterns of past projects."""
    from rag_assets.systems.experience import command_line

    values = {
        "task": {"description": description, "type": task_type, "technology": technology},
        "agent_type": agent,
        "token_budget": tokens,
        "project_id": project,
    }
    command_line.write_context(tenant, values, basic, as_json=json)


@app.command("feedback")
def feedback(
    tenant: TenantArgument,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Id of the question.")],
    pattern: _PatternArgument,
    outcome: Annotated[Literal["helped", "did_not_help"], typer.Argument(help="The outcome.")],
    json: Json = False,
) -> None:
    """Report whether a pattern in an answer helped."""
    from rag_assets.systems.experience import command_line

    values = {"query_id": query, "pattern_id": pattern, "outcome": outcome}
    command_line.give_feedback(tenant, values, as_json=json)


@app.command("patterns")
def patterns(
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
    json: Json = False,
) -> None:
    """List, search and filter patterns, or show one with its entries and merges."""
    from rag_assets.systems.experience import command_line

    if pattern is None:
        values = {
            "order": order,
            "search": search,
            "entry_type": type_,
            "agent_type": agent,
            "task_type": task_type,
            "technology": technology,
            "project_id": project,
        }
        command_line.list_patterns(tenant, values, as_json=json)
    else:
        command_line.show_pattern(tenant, pattern, as_json=json)


@app.command("merge")
def merge(
    tenant: TenantArgument,
    pattern: _PatternArgument,
    into: Annotated[str, typer.Argument(metavar="INTO", help="Id of the other pattern.")],
    yes: Annotated[
        bool, typer.Option("--yes", help="Merge them even if their problems differ.")
    ] = False,
    json: Json = False,
) -> None:
    """Merge a pattern into a different one; requires --yes if their problems differ."""
    from rag_assets.systems.experience import command_line

    command_line.merge(tenant, pattern, into, is_confirmed=yes, as_json=json)


@app.command("split")
def split(
    tenant: TenantArgument,
    pattern: _PatternArgument,
    entry: Annotated[str, typer.Argument(metavar="ENTRY", help="Id of the entry.")],
    json: Json = False,
) -> None:
    """Move an entry out of a pattern, into a new pattern."""
    from rag_assets.systems.experience import command_line

    command_line.split(tenant, pattern, entry, as_json=json)


@app.command("retract")
def retract(
    tenant: TenantArgument,
    entry: Annotated[str | None, typer.Option("--entry", help="Id of one entry.")] = None,
    project: Annotated[
        str | None, typer.Option("--project", help="Id of a project; retracts all its entries.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option("--token", help="Id of a token; retracts all entries captured with it."),
    ] = None,
    json: Json = False,
) -> None:
    """Retract entries: searches omit them immediately, and the next sync deletes them."""
    from rag_assets.systems.experience import command_line

    command_line.retract(tenant, entry=entry, project=project, token=token, as_json=json)


@app.command("report")
def report(tenant: TenantArgument, json: Json = False) -> None:
    """Report entries, questions, feedback and upcoming expiries."""
    from rag_assets.systems.experience import command_line

    command_line.report(tenant, as_json=json)


@app.command("assess")
def assess(
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
    json: Json = False,
) -> None:
    """Grade the relevance, clarity and worth of patterns with the tenant's chat model."""
    from rag_assets.systems.experience.assessment import assess_patterns

    assess_patterns(tenant, patterns=patterns, after=after, as_json=json)
