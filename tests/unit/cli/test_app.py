"""Options of the command line itself, and the reference of commands."""

from __future__ import annotations

from importlib.metadata import version

import click
import pytest
from typer.main import get_command

from docs.tools.commands import commands_page
from rag_assets.cli.app import app, run


def test_the_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"rag-assets {version('rag-assets')}\n"


def test_the_reference_has_every_command() -> None:
    root = get_command(app)
    assert isinstance(root, click.Group)
    context = click.Context(root, info_name="rag-assets")
    page = commands_page()
    missing = []
    for name in root.list_commands(context):
        command = root.get_command(context, name)
        paths = (
            [f"{name} {sub}" for sub in command.commands]
            if isinstance(command, click.Group)
            else [name]
        )
        missing += [path for path in paths if f"# rag-assets {path}\n" not in page]
    assert missing == []
    assert "`--top-k" in page
