import subprocess
import sys
from importlib.metadata import version

import click
import pytest
from typer.main import get_command

from docs.tools.commands import build_commands_page
from rag_assets.cli.app import COMMANDS, app, run
from rag_assets.plugins.registry import installed_systems


def test_the_version_is_that_of_the_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"rag-assets {version('rag-assets')}\n"


def test_the_reference_has_every_command() -> None:
    root = get_command(app)
    assert isinstance(root, click.Group)
    context = click.Context(root, info_name="rag-assets")
    page = build_commands_page()
    missing = []
    for name in root.list_commands(context):
        command = root.get_command(context, name)
        paths = [f"{name} {sub}" for sub in getattr(command, "commands", ())] or [name]
        missing += [path for path in paths if f"# rag-assets {path}\n" not in page]
    assert missing == []
    assert "`--top-k" in page


def test_the_registry_describes_each_command_as_the_first_sentence_of_its_help() -> None:
    root = get_command(app)
    assert isinstance(root, click.Group)
    context = click.Context(root, info_name="rag-assets")
    described_by_name = {name: help_text for name, (_, help_text) in COMMANDS.items()}
    for installed in installed_systems():
        described_by_name |= installed.system.command_help
    for name, described in described_by_name.items():
        command = root.get_command(context, name)
        assert command is not None
        assert (command.help or "").partition("\n\n")[0] == described, name


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_the_list_of_commands_imports_no_command(arguments: list[str]) -> None:
    program = (
        "import sys; from rag_assets.cli.app import run; run(sys.argv[1:]);"
        "print(*(name for name in sys.modules if name.startswith('rag_assets.')))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
    )
    imported = set(ran.stdout.splitlines()[-1].split())
    assert "rag_assets.cli.app" in imported
    assert not {f"rag_assets.cli.{name}" for name in ("session", "sync", "search")} & imported
    assert not any(name.startswith("rag_assets.storage") for name in imported)
