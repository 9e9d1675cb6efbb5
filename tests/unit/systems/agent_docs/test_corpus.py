"""Pages of commands: their trees, reproducible bytes, and hostile commands."""

from __future__ import annotations

import argparse
import os
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from rag_assets.common.errors import ConfigurationError
from rag_assets.systems.agent_docs import command_runner
from rag_assets.systems.agent_docs.command_runner import (
    CallLimitReached,
    CommandRunner,
    strip_formatting,
)
from rag_assets.systems.agent_docs.help_pages import build_help_pages, parse_subcommands
from rag_assets.systems.agent_docs.pages import (
    CommandPage,
    find_version_warnings,
    read_front_matter,
    record_programs,
    write_pages,
)

ARGPARSE = f"""#!{sys.executable}
import argparse
parser = argparse.ArgumentParser(prog="tool", description="A tool.")
parser.add_argument("--version", action="version", version="tool 1.2")
parser.add_argument("--color", choices=["always", "never"])
groups = parser.add_subparsers()
add = groups.add_parser("add", help="add things", description="Adds.")
add.add_argument("--force", help="add even where ``` it is there")
remote = groups.add_parser("remote").add_subparsers()
remote.add_parser("rename", description="Renames a remote.")
parser.parse_args()
"""
CLICK = f"""#!{sys.executable}
import click
@click.group()
@click.version_option("3.4", prog_name="tool")
def main(): "A tool."
@main.command()
def add(): "Adds."
@main.group()
def remote(): "Remotes."
@remote.command()
def rename(): "Renames a remote."
main(prog_name="tool")
"""
COBRA = """#!/bin/sh
case "$*" in
--version) echo "tool version v2" ;;
--help) cat <<END ;;
A tool.

Usage:
  tool [command]

Available Commands:
  add         Adds
  remote      Remotes
  help        Help

Flags:
  -h, --help   help
END
"add --help") printf 'Adds.\\n\\nUsage:\\n  tool add [flags]\\n' ;;
"remote --help") cat <<END ;;
Remotes.

Usage:
  tool remote [command]

Available Commands:
  rename      Renames
END
"remote rename --help") printf 'Renames a remote.\\n\\nUsage:\\n  tool remote rename\\n' ;;
*) exit 1 ;;
esac
"""
CLAP = COBRA.replace("Available Commands:", "Commands:").replace(
    "add         Adds", "add <NAME>  Adds"
)
TREE = ["tool", "tool add", "tool remote", "tool remote rename"]


def install(folder: Path, script: str, name: str = "tool") -> dict[str, str]:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(script)
    path.chmod(stat.S_IRWXU)
    return {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "AWS_SECRET_ACCESS_KEY": "hidden"}


@pytest.mark.parametrize("script", [ARGPARSE, CLICK, COBRA, CLAP])
def test_the_tree_of_a_command(script: str, tmp_path: Path) -> None:
    found = build_help_pages(["tool"], 3, install(tmp_path / "bin", script), max_calls=50)
    assert [page.command for page in found.pages] == TREE
    assert found.warnings == ()
    assert "Renames a remote." in found.pages[-1].text
    assert any(digit in found.pages[0].version for digit in "23") or "1.2" in found.pages[0].version


@pytest.mark.parametrize(("depth", "count"), [(0, 1), (1, 3), (2, 4)])
def test_no_deeper_than_asked(depth: int, count: int, tmp_path: Path) -> None:
    variables = install(tmp_path / "bin", ARGPARSE)
    assert len(build_help_pages(["tool"], depth, variables, max_calls=50).pages) == count


def test_a_subcommand_that_was_named_is_the_root(tmp_path: Path) -> None:
    variables = install(tmp_path / "bin", ARGPARSE)
    found = build_help_pages(["tool remote"], 3, variables, max_calls=50)
    assert [page.command for page in found.pages] == TREE[2:]


def test_the_same_version_gives_the_same_bytes(tmp_path: Path) -> None:
    variables = install(tmp_path / "bin", ARGPARSE)
    out = tmp_path / "out"
    assert write_pages(build_help_pages(["tool"], 3, variables, max_calls=50).pages, out) == (4, 0)
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    assert write_pages(build_help_pages(["tool"], 3, variables, max_calls=50).pages, out) == (0, 0)
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert set(before) == {"tool.md", "tool-add.md", "tool-remote.md", "tool-remote-rename.md"}
    assert read_front_matter(out / "tool-add.md") == ("tool add", "tool 1.2")
    assert b"````text" in before["tool-add.md"]  # a fence longer than what is within
    (out / "mine.md").write_text("# Mine\n")
    install(tmp_path / "bin", ARGPARSE.replace('"add"', '"append"'))
    found = build_help_pages(["tool"], 3, variables, max_calls=50)
    assert write_pages(found.pages, out) == (2, 0)
    assert write_pages(found.pages, out, replacing=["tool remote"]) == (0, 0)
    assert write_pages(found.pages, out, replacing=["tool"]) == (0, 1)
    assert (out / "mine.md").is_file()


@pytest.mark.long
def test_git_of_this_machine() -> None:
    found = build_help_pages(["git"], 1, dict(os.environ), max_calls=400)
    names = {page.command for page in found.pages}
    assert {"git", "git add", "git commit", "git rebase", "git stash"} <= names
    assert found.pages[0].version.startswith("git version ")
    pages = {page.command: page.text for page in found.pages}
    assert pages["git add"].startswith("Add file contents to the index")


def test_help_as_man_pages_have_it() -> None:
    heading = "".join(f"{letter}\b{letter}" for letter in "AVAILABLE COMMANDS")
    text = strip_formatting(f"{heading}\n       +\bo cp\n\n       +\bo ls\n")
    assert list(parse_subcommands(text)) == ["cp", "ls"]


def test_choices_of_options_are_no_subcommands() -> None:
    parser = argparse.ArgumentParser(prog="x")
    parser.add_argument("--when", choices=["now", "later"])
    parser.add_argument("-k", choices=["a1", "b1"])
    assert parse_subcommands(strip_formatting(parser.format_help())) == {}


@pytest.mark.parametrize(
    ("script", "whole"),
    [
        ("#!/bin/sh\nsleep 60\n", False),
        ("#!/bin/sh\nwhile :; do echo 'usage: tool and so on'; done\n", False),
        ("#!/bin/sh\nsleep 61 & setsid sleep 62 &\necho 'usage: tool [options]'\n", False),
        ("#!/bin/sh\nread line || echo 'usage: nothing to be read'\n", True),
    ],
)
def test_hostile_commands_are_ended_with_all_that_they_started(
    script: str, whole: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_runner, "MAX_SECONDS", 1.0)
    variables = install(tmp_path / "bin", script)
    # Not what these start themselves, as the servers of other tests do all the time.
    before = {child.pid for child in psutil.Process().children()}
    started = time.monotonic()
    with subprocess.Popen(["sleep", "90"]) as other:
        said = CommandRunner(tmp_path, variables).run([str(tmp_path / "bin/tool")])
        assert other.poll() is None  # No child of ours that was there before is ended.
        other.kill()
    assert time.monotonic() - started < 10
    assert said.is_complete is whole
    assert len(said.text) <= command_runner.MAX_BYTES
    left = [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] in _SLEEPS]
    assert left == []
    assert {child.pid for child in psutil.Process().children()} <= before


_SLEEPS = (["sleep", "60"], ["sleep", "61"], ["sleep", "62"])


def test_commands_see_no_secret_and_an_empty_home(tmp_path: Path) -> None:
    script = "#!/bin/sh\nenv; echo usage: $HOME; ls -a ~\n"
    variables = install(tmp_path / "bin", script)
    home = tmp_path / "empty"
    home.mkdir()
    said = CommandRunner(home, variables).run([str(tmp_path / "bin/tool")])
    assert "hidden" not in said.text
    assert "usage: ~\n" in said.text
    assert str(home) not in said.text


def test_calls_are_limited(tmp_path: Path) -> None:
    variables = install(tmp_path / "bin", ARGPARSE)
    found = build_help_pages(["tool"], 3, variables, max_calls=3)
    assert len(found.pages) == 1
    assert "more than 3 calls" in found.warnings[0]
    caller = CommandRunner(tmp_path, variables, max_calls=0)
    with pytest.raises(CallLimitReached):
        caller.run(["true"])


@pytest.mark.parametrize("name", ["", "--version", "no-such-command-at-all", "-c"])
def test_a_command_that_is_not_there(name: str) -> None:
    with pytest.raises(ConfigurationError, match="was not found"):
        build_help_pages([name], 1, dict(os.environ), max_calls=5)


def test_another_version_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    variables = install(tmp_path / "bin", ARGPARSE)
    monkeypatch.setenv("PATH", variables["PATH"])
    out = tmp_path / "out"
    write_pages(build_help_pages(["tool"], 1, variables, max_calls=50).pages, out)
    pages = sorted(out.iterdir())
    assert find_version_warnings(pages) == []  # nobody has asked for pages of it here
    record_programs({"tool": str(tmp_path / "bin/tool")})
    assert find_version_warnings(pages) == []
    install(tmp_path / "bin", ARGPARSE.replace("tool 1.2", "tool 1.3"))
    assert find_version_warnings(pages) == ["tool is tool 1.3, its pages are of tool 1.2"]


TALKING = f"""#!{sys.executable}
import os, socket, sys
if "--version" in sys.argv:
    print("tool 1.2")
    sys.exit()
said = []
for family, address in ((socket.AF_INET, ("127.0.0.1", PORT)), (socket.AF_UNIX, "PATH")):
    try:
        with socket.socket(family) as client:
            client.connect(address)
            client.send(b"secret")
        said.append("connected")
    except PermissionError:
        said.append("refused")
pairs = socket.socketpair()
print("Usage: tool --help prints this text.", *said, len(pairs))
"""


@pytest.mark.skipif(not command_runner.can_block_network(), reason="the platform cannot")
def test_commands_have_no_network(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(socket.AF_UNIX) as unix:
        place = str(tmp_path / "socket")
        unix.bind(place)
        unix.listen()
        text = TALKING.replace("PORT", str(tcp.getsockname()[1])).replace("PATH", place)
        tool = tmp_path / "bin/tool"
        tool.parent.mkdir()
        tool.write_text(text)
        tool.chmod(0o755)
        variables = {"PATH": f"{tool.parent}{os.pathsep}{os.environ['PATH']}"}
        [page] = build_help_pages(["tool"], 0, variables, max_calls=10).pages
        assert "refused refused 2" in page.text
        for server in (tcp, unix):
            server.setblocking(False)
            with pytest.raises(BlockingIOError):
                server.accept()
    with socket.socket(socket.AF_INET):
        pass  # This process keeps its own.


def test_the_present_folder_is_not_looked_for_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tool").write_text(COBRA)
    (tmp_path / "tool").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for path in ("", ".", "./", f".{os.pathsep}/usr/bin", f"/usr/bin{os.pathsep}"):
        with pytest.raises(ConfigurationError, match="was not found"):
            build_help_pages(["tool"], 0, {"PATH": path}, max_calls=10)
    assert build_help_pages(["./tool"], 0, {"PATH": "/bin:/usr/bin"}, max_calls=10).pages


def test_pages_are_written_to_no_file_elsewhere(tmp_path: Path) -> None:
    folder, treasure = tmp_path / "pages", tmp_path / "treasure"
    folder.mkdir()
    treasure.write_text("gold")
    for name in ("tool.md", ".tool.md.new"):
        (folder / name).symlink_to(treasure)
    write_pages([CommandPage("tool", "1", "A tool.")], folder)
    assert treasure.read_text() == "gold"
    assert "A tool." in (folder / "tool.md").read_text()
