"""The reference of commands, from the command line's own help."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click
from typer.main import get_command

from docs.tools.tables import format_table
from rag_assets.cli.app import app

_HEAD = """# Commands

This page is for operators and developers who look up a command or an option. It is made from the
help that `--help` prints.

Every command takes `--json`, and exits non-zero on failure. It answers bad input with one line and
a hint. `RAG_ASSETS_HOME` chooses the folder that holds `tenants.yaml` and `.local`.
"""
_EVERYWHERE = frozenset({"as_json", "json", "help"})
"""Options of every command, which the page's introduction describes."""


def build_commands_page() -> str:
    """Return the page of all commands, those of systems last."""
    root = get_command(app)
    assert isinstance(root, click.Group)  # noqa: S101 - the application has commands
    context = click.Context(root, info_name="rag-assets")
    single, groups = [], []
    for name in root.list_commands(context):
        command = root.get_command(context, name)
        assert command is not None  # noqa: S101 - it is listed
        (groups if isinstance(command, click.Group) else single).append((name, command))
    parts = [_HEAD, "## Commands without a group\n"]
    for name, command in single:
        parts += _write_section(command, click.Context(command, context, name))
    for name, group in groups:
        assert isinstance(group, click.Group)  # noqa: S101 - sorted by it
        parts += _write_group(group, click.Context(group, context, name))
    return "\n".join(parts).rstrip() + "\n"


def _write_group(group: click.Group, context: click.Context) -> Iterator[str]:
    yield f"## {context.command_path}\n"
    if help_text := _to_markdown(group.help):
        yield f"{help_text}\n"
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None  # noqa: S101 - it is listed
        inner = click.Context(command, context, name)
        yield from (
            _write_group(command, inner)
            if isinstance(command, click.Group)
            else _write_section(command, inner)
        )


def _write_section(command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"### {context.command_path}\n"
    if help_text := _to_markdown(command.help):
        yield f"{help_text}\n"
    rows = [
        (f"`{left.strip()}`", _to_markdown(right))
        for parameter in command.params
        if parameter.name not in _EVERYWHERE
        and (record := parameter.get_help_record(context)) is not None
        for left, right in (record,)
    ]
    if rows:
        yield format_table(("argument or option", "meaning"), rows).replace("---:", "---")


def _to_markdown(text: str | None) -> str:
    """Return help text as one line of Markdown."""
    plain = re.sub(r"\s+", " ", text or "").strip()
    return plain.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")
