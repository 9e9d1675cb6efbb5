"""Help pages of commands: manual pages, roff, and the corpus of an installation."""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
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
from rag_assets.systems.agent_docs.help_pages import (
    build_help_pages,
    build_man_pages,
    parse_subcommands,
)
from rag_assets.systems.agent_docs.pages import (
    CommandPage,
    convert_roff_to_markdown,
    drop_name_section_if_empty,
    drop_repeated_sections,
    find_version_warnings,
    is_docutils,
    list_subcommands,
    read_front_matter,
    record_programs,
    write_pages,
)

MAN = r""".TH TOOL 1 2026-01-01 "tool 9"
.SH NAME
tool \- a tool with a hyphen\-ated\-name
.SH OPTIONS
.TP
\fB\-\-very\-long\-option\fR=\fI<path>\fR
Takes a path.
"""
MDOC = """.Dd January 1, 2026
.Dt TOOL-ADD 1
.Os
.Sh NAME
.Nm tool-add
.Nd adds things
.Sh OPTIONS
.Bl -tag -width Ds
.It Fl -all-of-them
Adds all.
.El
"""
RENDERERS = ("mandoc", "pandoc")
needs_renderers = pytest.mark.skipif(
    "RAG_ASSETS_TEST_RENDERERS" not in os.environ and not all(map(shutil.which, RENDERERS)),
    reason="mandoc and pandoc are not installed: make renderers",
)


def machine(folder: Path, *renderers: str, **pages: str) -> dict[str, str]:
    """Return the variables of a machine with a command, its pages, and some renderers."""
    programs, man = folder / "bin", folder / "man" / "man1"
    programs.mkdir()
    man.mkdir(parents=True)
    (programs / "tool").write_text("#!/bin/sh\necho tool 9\n")
    (programs / "tool").chmod(stat.S_IRWXU)
    for name in renderers:
        (programs / name).symlink_to(shutil.which(name) or pytest.fail(f"{name} is not installed"))
    for name, text in pages.items():
        (man / f"{name.replace('_', '-')}.1").write_text(text)
    return {"PATH": str(programs), "MANPATH": str(folder / "man")}


def test_man_pages_need_a_renderer(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="neither mandoc nor pandoc"):
        build_man_pages(["git"], {"PATH": str(tmp_path)}, max_calls=5)


@pytest.mark.slow
@needs_renderers
@pytest.mark.parametrize("renderers", [("mandoc",), RENDERERS])
def test_man_pages_of_both_forms_are_rendered(renderers: tuple[str, ...], tmp_path: Path) -> None:
    variables = machine(tmp_path, *renderers, tool=MAN, tool_add=MDOC, toolbox=MAN)
    found = build_man_pages(["tool"], variables, max_calls=9)
    assert found.warnings == ()
    assert [page.command for page in found.pages] == ["tool", "tool add"]
    assert {page.version for page in found.pages} == {"tool 9"}
    of_man, of_mdoc = (page.text for page in found.pages)
    assert "--very-long-option" in of_man
    assert "hyphen-ated-name" in of_man
    assert "--all-of-them" in of_mdoc
    for text in (of_man, of_mdoc):
        assert "\n## options" in text.lower()
        assert "2026" not in text  # The edges of the page.
        assert not text.startswith("# ")


@pytest.mark.slow
@needs_renderers
@pytest.mark.parametrize(
    ("renderers", "pages", "kept", "warning"),
    [
        (
            ("pandoc",),
            {"tool": MAN, "tool_add": MDOC},
            ["tool"],
            "tool add: it is written in mdoc, which needs mandoc; it is left out",
        ),
        (RENDERERS, {"tool": ""}, [], "tool: pandoc cannot render its page; it is left out"),
    ],
    ids=["unreadable", "empty"],
)
def test_a_page_that_cannot_be_rendered_is_reported_and_left_out(
    renderers: tuple[str, ...], pages: dict[str, str], kept: list[str], warning: str, tmp_path: Path
) -> None:
    found = build_man_pages(["tool"], machine(tmp_path, *renderers, **pages), max_calls=9)
    assert [page.command for page in found.pages] == kept
    assert found.warnings == (warning,)


@pytest.mark.slow
@needs_renderers
def test_a_page_may_stand_for_another_but_for_none_outside(tmp_path: Path) -> None:
    variables = machine(tmp_path, *RENDERERS, tool=".so man1/other.1\n", tool_x=".so ../secret.1\n")
    packed = gzip.compress(MAN.replace("a tool with", "another tool with").encode())
    (tmp_path / "man" / "man1" / "other.1.gz").write_bytes(packed)
    (tmp_path / "secret.1").write_text(MAN.replace("a tool with", "a secret with"))
    found = build_man_pages(["tool"], variables, max_calls=9)
    texts = [page.text for page in found.pages]
    assert "another tool with" in texts[0]
    assert not any("secret" in text for text in texts)


@pytest.mark.slow
@needs_renderers
def test_calls_of_man_pages_are_limited(tmp_path: Path) -> None:
    variables = machine(tmp_path, *RENDERERS, tool=MAN, tool_add=MAN)
    found = build_man_pages(["tool"], variables, max_calls=2)
    assert [page.command for page in found.pages] == ["tool"]
    assert "more than 2 calls" in found.warnings[0]


SPHINX_MAN = r""".\" Man page generated from reStructuredText.
.
.nr rst2man-indent-level 0
.de1 INDENT
. RS \\$1
..
.TH "CP"  "" "" ""
.SH NAME
cp \-
.SH DESCRIPTION
.sp
Copies a \fBLocalPath\fP or an object\(aqs \fI\%copy\fP; use \fB\-\-acl public\-read\fP\&.
.SH OPTIONS
.sp
\fB\-\-role\fP (string)
.INDENT 0.0
.INDENT 3.5
The role of the
function.
.sp
Valid values:
.INDENT 0.0
.IP \(bu 2
\fBauthenticated\-read\fP
.IP \(bu 2
\fBCOPY\fP (default) \- a copy.
.UNINDENT
.UNINDENT
.UNINDENT
.sp
\fBNo code at all\fP here.
.INDENT 0.0
.INDENT 3.5
.sp
.nf
.ft C
aws s3 cp a b \e
    \-\-exclude \(dq*\(dq
.ft P
.fi
.UNINDENT
.UNINDENT
.sp
After it.
.SH AVAILABLE COMMANDS
.INDENT 0.0
.IP \(bu 2
ls
.IP \(bu 2
help
.UNINDENT
.\" Generated by docutils manpage writer.
"""
MARKDOWN = """\
## Name

cp -

## Description

Copies a `LocalPath` or an object's copy; use `--acl public-read`.

## Options

- `--role` (string): The role of the function.

  Valid values:

  - `authenticated-read`
  - `COPY` (default) - a copy.

- **No code at all** here.

  ```
  aws s3 cp a b \\
      --exclude "*"
  ```

After it.

## Available commands

- ls
- help"""


def test_a_man_page_of_docutils_is_read() -> None:
    assert is_docutils(SPHINX_MAN)
    assert not is_docutils("usage: cp")
    assert convert_roff_to_markdown(SPHINX_MAN) == MARKDOWN
    assert list_subcommands(MARKDOWN) == ["ls"]
    assert drop_name_section_if_empty(MARKDOWN).startswith("## Description")


def test_hostile_man_pages_end() -> None:
    for text in ("\\f", "\\", ".IP", ".INDENT 0.0\n" * 2_000, ".UNINDENT\n.fi\n.nf\nx", ".SH\n.SS"):
        convert_roff_to_markdown(f'.\\" Man page generated from reStructuredText.\n{text}\n')


def test_aws_hands_its_pages_over_where_no_renderer_is_installed(tmp_path: Path) -> None:
    script = (
        '#!/bin/sh\ncase "$*" in\n--version) echo aws-cli/1.2 ;;\n'
        f"help) groff -m man -T ascii <<'END'\n{SPHINX_MAN}END\n;;\n"
        f"'ls help') groff -m man -T ascii <<'END'\n{SPHINX_MAN.replace('a copy', 'one')}END\n;;\n"
        "*) exit 1 ;;\nesac\n"
    )
    found = build_help_pages(["aws"], 1, install(tmp_path / "bin", script, "aws"), max_calls=20)
    page, below = found.pages
    assert (page.command, page.version) == ("aws", "aws-cli/1.2")
    assert page.text == drop_name_section_if_empty(MARKDOWN)
    assert below.command == "aws ls"


def test_long_sections_are_not_repeated() -> None:
    long = "## Global options\n\n" + "An option of all commands. " * 30
    known: dict[str, str] = {}
    first_page = CommandPage("a", "1", f"About a.\n\n{long}\n\n## Short\n\nx\n")
    second_page = CommandPage("a b", "1", f"## Own\n\ny\n\n{long}\n\n## Short\n\nx\n")
    assert drop_repeated_sections(first_page, known) == first_page
    assert drop_repeated_sections(second_page, known).text == (
        "## Own\n\ny\n\n## Global options\n\nThe same as of `a`.\n\n## Short\n\nx\n"
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
def test_all_subcommands_of_a_command_are_found(script: str, tmp_path: Path) -> None:
    found = build_help_pages(["tool"], 3, install(tmp_path / "bin", script), max_calls=50)
    assert [page.command for page in found.pages] == TREE
    assert found.warnings == ()
    assert "Renames a remote." in found.pages[-1].text
    assert any(digit in found.pages[0].version for digit in "23") or "1.2" in found.pages[0].version


@pytest.mark.parametrize(
    ("command", "depth", "pages"),
    [("tool", 0, TREE[:1]), ("tool", 1, TREE[:3]), ("tool", 2, TREE), ("tool remote", 3, TREE[2:])],
)
def test_subcommands_of_the_named_command_are_followed_to_the_given_depth(
    command: str, depth: int, pages: list[str], tmp_path: Path
) -> None:
    found = build_help_pages([command], depth, install(tmp_path / "bin", ARGPARSE), max_calls=50)
    assert [page.command for page in found.pages] == pages


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
    pages = {page.command: page.text for page in found.pages}
    assert {"git", "git add", "git commit", "git rebase", "git stash"} <= pages.keys()
    assert found.pages[0].version.startswith("git version ")
    assert pages["git add"].startswith("Add file contents to the index")


def test_help_with_overstruck_letters_is_read() -> None:
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
def test_hostile_commands_end_with_their_children(
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
    sleeps = [["sleep", seconds] for seconds in ("60", "61", "62")]
    assert not [p for p in psutil.process_iter(["cmdline"]) if p.info["cmdline"] in sleeps]
    assert {child.pid for child in psutil.Process().children()} <= before


def test_commands_see_no_secret_and_an_empty_home(tmp_path: Path) -> None:
    script = "#!/bin/sh\nenv; echo usage: $HOME; ls -a ~\n"
    variables, home = install(tmp_path / "bin", script), tmp_path / "empty"
    home.mkdir()
    said = CommandRunner(home, variables).run([str(tmp_path / "bin/tool")])
    assert "hidden" not in said.text
    assert "usage: ~\n" in said.text
    assert str(home) not in said.text


def test_calls_of_help_pages_are_limited(tmp_path: Path) -> None:
    variables = install(tmp_path / "bin", ARGPARSE)
    found = build_help_pages(["tool"], 3, variables, max_calls=3)
    assert len(found.pages) == 1
    assert "more than 3 calls" in found.warnings[0]
    with pytest.raises(CallLimitReached):
        CommandRunner(tmp_path, variables, max_calls=0).run(["true"])


@pytest.mark.parametrize("name", ["", "--version", "no-such-command-at-all", "-c"])
def test_a_missing_command_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="was not found"):
        build_help_pages([name], 1, dict(os.environ), max_calls=5)


def test_outdated_pages_cause_a_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
        variables = install(tmp_path / "bin", text)
        [page] = build_help_pages(["tool"], 0, variables, max_calls=10).pages
        assert "refused refused 2" in page.text
        for server in (tcp, unix):
            server.setblocking(False)
            with pytest.raises(BlockingIOError):
                server.accept()
    with socket.socket(socket.AF_INET):
        pass  # This process keeps its own.


def test_the_current_folder_is_not_searched(
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
