"""Pages from the help and the man pages of commands and their subcommands.

The help may have the format of argparse, click, cobra, clap, git or the aws command line. Man pages
are written in mdoc(7) or man(7). mandoc renders mdoc as Markdown and man as text; pandoc renders
man as Markdown.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from pathlib import Path
from typing import Final, NamedTuple

from rag_assets.common.errors import ConfigurationError
from rag_assets.systems.agent_docs.command_runner import (
    MAX_BYTES,
    CallLimitReached,
    CommandOutput,
    CommandRunner,
    filter_search_path,
    find_command,
    read_version,
    strip_formatting,
)
from rag_assets.systems.agent_docs.pages import (
    CommandPage,
    Corpus,
    build_page_from_help,
    convert_roff_to_markdown,
    drop_name_section_if_empty,
    drop_repeated_sections,
    is_docutils,
    list_subcommands,
)

_NAME = r"[a-z0-9][A-Za-z0-9_.:+-]{0,60}"
_HEADING = re.compile(
    r"(?:\S+ ){0,5}(?:sub)?(?:commands|services)\b(?:\W| are:?$|$).*", re.IGNORECASE
)
_MAX_HEADING_CHARACTERS = 60
"""Maximum characters of a heading; a longer line is not a heading."""
_ARGUMENT = r"(?: (?:\[[^\]]{1,60}\]|<[^>]{1,60}>|\.\.\.))"
_ENTRY = re.compile(
    rf"^\s{{1,8}}(?P<name>{_NAME})(?:, {_NAME})*\*?{_ARGUMENT}{{0,9}}"
    r"(?::?\s{2,}(?P<summary>\S.*)|:? *)$"
)
_DJANGO_APPLICATION = re.compile(r"\[[\w.-]+\]")
"""A line above the commands of one application in the help of Django."""
_BULLET = re.compile(rf"^\s+[o*•]\s+(?P<name>{_NAME})\s*$")
_CHOICES = re.compile(r"(?<!=)\{(?P<names>[\w.-]+(?:,[\w.-]+)*)\}")
_GIT_GROUP = re.compile(r"^[a-z][a-z ,]+(?: \(see also: [^)]+\))?$")
_IGNORED: Final = frozenset({"help", "completion", "completions"})
_HELP_ARGUMENTS: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "git": (("-h",),),
    "aws": (("help",), ("--help",)),
}
"""Arguments that make some programs print their help."""
_DEFAULT_HELP_ARGUMENTS: Final = (("--help",), ("-h",), ("help",))
_LIST_ARGUMENTS: Final[Mapping[str, tuple[str, ...]]] = {"git": ("help", "-a")}
"""Arguments that make some programs list all subcommands; their help names only a few."""
_MAN_RENDERING: Final = frozenset({"aws"})
"""Programs that render man pages as help; our stand-in for groff makes them print the source."""
_HELP_EXIT_CODES: Final = frozenset({0, 1, 2, 129})
"""Exit codes of programs that printed their help; git exits with 129."""
_WORD = re.compile(r"[A-Za-z0-9_][\w.+-]*")
_MIN_HELP_CHARACTERS: Final = 20


def build_help_pages(
    commands: Sequence[str],
    depth: int,
    variables: Mapping[str, str],
    *,
    max_calls: int,
    progress: Callable[[str], None] = lambda _: None,
) -> Corpus:
    """Create pages from the help of commands and their subcommands.

    Only these commands are run.

    Args:
        commands: names in PATH, optionally with subcommands: `git`, `aws s3`.
        depth: levels of subcommands below each command.
        progress: called with each command after its help was read.

    Raises:
        ConfigurationError: a command was not found, or prints no help.
    """
    pages: list[CommandPage] = []
    warnings: list[str] = []
    with (
        tempfile.TemporaryDirectory(prefix="rag-assets-help-") as home,
        tempfile.TemporaryDirectory(prefix="rag-assets-tools-") as tools,
    ):
        runner = CommandRunner(Path(home), variables, max_calls=max_calls)
        # This stand-in for groff prints a man page's source instead of rendering it.
        groff = Path(tools) / "groff"
        groff.write_text("#!/bin/sh\nexec cat\n")
        groff.chmod(0o700)
        for command in commands:
            tree = _CommandTree(runner, command.split(), variables, warnings, Path(tools))
            try:
                for page in tree.build_pages(depth):
                    pages.append(page)
                    progress(page.command)
            except CallLimitReached:
                warnings.append(f"{command}: more than {max_calls:,} calls; the rest is left out")
                break
    return Corpus(tuple(pages), tuple(warnings))


class _CommandHelp(NamedTuple):
    """The help of a command.

    Attributes:
        command_words: the command and any subcommands.
        levels: how many levels of subcommands below the command are read.
        summary: description of the command in the help of its parent command.
    """

    command_words: list[str]
    text: str
    levels: int
    summary: str = ""


class _CommandTree:
    """A command and its subcommands.

    Args:
        warnings: warnings are added to this list.
        tools: the folder with our stand-in for groff.
    """

    def __init__(
        self,
        runner: CommandRunner,
        command_words: Sequence[str],
        variables: Mapping[str, str],
        warnings: list[str],
        tools: Path,
    ) -> None:
        self._runner = runner
        self._command_words = list(command_words)
        name = command_words[0] if command_words else ""
        # For subcommands, only the form that worked for the command is used: a subcommand could
        # execute the word `help`.
        self._help_arguments = _HELP_ARGUMENTS.get(Path(name).name, _DEFAULT_HELP_ARGUMENTS)
        self._program = find_command(name, variables)
        self._tools = tools if Path(self._program).name in _MAN_RENDERING else None
        self._section_owners: dict[str, str] = {}
        self._warnings = warnings
        self._version = read_version(runner, self._program)

    def build_pages(self, depth: int) -> Iterator[CommandPage]:
        text = self._read_help(self._command_words)
        if not text:
            raise ConfigurationError(
                f"{' '.join(self._command_words)} prints no help",
                hint="choose a command that supports --help",
            )
        pending = [_CommandHelp(self._command_words, text, depth)]
        while pending:
            page_help = pending.pop()
            command = " ".join(page_help.command_words)
            if is_docutils(page_help.text):
                markdown = drop_name_section_if_empty(convert_roff_to_markdown(page_help.text))
                page = CommandPage(command, self._version, markdown)
            else:
                page = build_page_from_help(
                    command, self._version, page_help.text, page_help.summary
                )
            yield drop_repeated_sections(page, self._section_owners)
            if page_help.levels > 0:
                pending += reversed(list(self._read_subcommands(page_help)))

    def _read_subcommands(self, parent: _CommandHelp) -> Iterator[_CommandHelp]:
        if is_docutils(parent.text):
            summaries = dict.fromkeys(list_subcommands(convert_roff_to_markdown(parent.text)), "")
        else:
            summaries = parse_subcommands(
                self._read_subcommand_list(parent.command_words) or parent.text
            )
        for name, summary in summaries.items():
            if not _WORD.fullmatch(name) or name == parent.command_words[-1]:
                continue
            command_words = [*parent.command_words, name]
            help_text = self._read_help(command_words)
            # For an unknown subcommand, a program prints its own help again, or no help.
            if help_text and help_text != parent.text:
                yield _CommandHelp(command_words, help_text, parent.levels - 1, summary)

    def _read_subcommand_list(self, command_words: Sequence[str]) -> str:
        name, *subcommands = command_words
        arguments = None if subcommands else _LIST_ARGUMENTS.get(Path(name).name)
        if arguments is None:
            return ""
        return strip_formatting(self._run_command([self._program, *arguments], name).text)

    def _read_help(self, command_words: Sequence[str]) -> str:
        label = " ".join(command_words)
        for arguments in self._help_arguments:
            output = self._run_command([self._program, *command_words[1:], *arguments], label)
            text = strip_formatting(output.text)
            if output.exit_code in _HELP_EXIT_CODES and _is_help(text):
                self._help_arguments = (arguments,)
                return text
            if output.exit_code == 0:
                break
        return ""

    def _run_command(self, argv: Sequence[str], label: str) -> CommandOutput:
        try:
            output = self._runner.run(argv, self._tools)
            if not output.is_complete:
                # The command is tried again, because the machine may have been busy.
                output = self._runner.run(argv, self._tools)
        except OSError as error:
            raise ConfigurationError(
                f"{label} cannot be started: {error.strerror}",
                hint="check the installation of the program",
            ) from None
        if not output.is_complete:
            self._warnings.append(
                f"{label}: the command exceeded its time limit or its output limit"
            )
        return output


def _is_help(text: str) -> bool:
    is_long = len(text) > _MIN_HELP_CHARACTERS
    return is_long and re.search(r"(?i)usage|synopsis|options|commands", text) is not None


def parse_subcommands(text: str) -> dict[str, str]:
    """Return the names in plain help that may be subcommands, with their summaries, in order.

    The caller runs each name to find out whether it is a subcommand.
    """
    names: dict[str, str] = {}
    for name, summary in (
        *_parse_subcommand_lists(text),
        *((name, "") for name in _parse_argument_choices(text)),
    ):
        if name not in _IGNORED:
            names[name] = names.get(name) or summary
    return names


def _parse_subcommand_lists(text: str) -> Iterator[tuple[str, str]]:
    """Yield names and summaries from lists below a heading about commands."""
    is_list = is_git = False
    for line in text.split("\n"):
        stripped = line.strip()
        if stripped and not line[0].isspace():
            if is_list and _DJANGO_APPLICATION.fullmatch(stripped):
                continue
            # Below its first heading, git has a further heading for each group of commands.
            is_git = is_git or line.startswith("These are common")
            is_heading = (
                len(stripped) <= _MAX_HEADING_CHARACTERS
                and _HEADING.fullmatch(stripped) is not None
            )
            is_list = is_heading or (is_git and bool(_GIT_GROUP.match(line)))
        elif is_list and (entry := _ENTRY.match(line) or _BULLET.match(line)) is not None:
            yield entry["name"], (entry.groupdict().get("summary") or "").strip()


def _parse_argument_choices(text: str) -> Iterator[str]:
    """Yield the choices of a positional argument in argparse's usage line."""
    usage = text.partition("\n\n")[0]
    if not usage.lower().startswith("usage:"):
        return
    joined = " ".join(usage.split())
    # Remove the choices of options.
    joined = re.sub(r"-{1,2}[\w-]+[ =]\{[^}]*\}", "", joined)
    for choices in _CHOICES.finditer(joined):
        yield from choices["names"].split(",")


_DEFAULT_ROOTS: Final = (Path("/usr/local/share/man"), Path("/usr/share/man"))
_MDOC = re.compile(rb"^\.Dd\b", re.MULTILINE)
_ALIAS = re.compile(rb"\A(?:[.'](?:\\\"| *$).*\n)*\.so +(\S+)")
"""Matches a page that consists of a reference to another page."""
_MAX_ALIASES: Final = 5
"""Maximum number of references that are followed from a page."""
_MARKDOWN_HEADING = re.compile(r"^(?=#+ )", re.MULTILINE)
_MARKDOWN_EDGES = re.compile(r"\A\S+\(\d\w*\) - .*\n|\n.*\w - .+\Z")
_TEXT_EDGES = re.compile(r"\A[^\n]*\n|\n[^\n]*\Z")
"""The first and last line that mandoc adds: the page's name, the system and its date."""


@dataclass(frozen=True, slots=True)
class _Renderer:
    """A program that renders one format of man pages.

    Attributes:
        argv: the command, without the file.
        is_markdown: whether the program prints Markdown rather than plain text.
    """

    argv: tuple[str, ...]
    is_markdown: bool = True

    def render(
        self, runner: CommandRunner, command: str, version: str, file: Path
    ) -> CommandPage | None:
        """Render a file as the page of a command; None if that fails."""
        output = runner.run([*self.argv, str(file)])
        text = strip_formatting(output.text)
        if output.exit_code != 0 or not text.strip():
            return None
        if not self.is_markdown:
            return build_page_from_help(command, version, _TEXT_EDGES.sub("", text))
        # mandoc escapes hyphens: `-&#45;all`
        markdown = unescape(text).replace("\N{NO-BREAK SPACE}", " ")
        # Every heading moves down one level, because the title of the page is the command.
        return CommandPage(
            command, version, _MARKDOWN_HEADING.sub("#", _MARKDOWN_EDGES.sub("", markdown))
        )


def build_man_pages(
    commands: Sequence[str], variables: Mapping[str, str], *, max_calls: int
) -> Corpus:
    """Create pages from the man pages of commands and their subcommands.

    Args:
        commands: names of man pages; `git` includes `git-add`.

    Raises:
        ConfigurationError: no renderer is installed, or a command has no man page.
    """
    renderers = _find_renderers(filter_search_path(variables))
    if not any(renderers.values()):
        raise ConfigurationError(
            "neither mandoc nor pandoc is installed",
            hint="install mandoc or pandoc, or use --from help",
        )
    pages: list[CommandPage] = []
    warnings: list[str] = []
    with tempfile.TemporaryDirectory(prefix="rag-assets-man-") as home:
        runner = CommandRunner(Path(home), variables, max_calls=max_calls)
        draft = Path(home) / "page"
        for command in commands:
            files = _find_man_files(command.replace(" ", "-"), variables)
            if not files:
                raise ConfigurationError(
                    f"{command} has no man page", hint="use --from help, or set MANPATH"
                )
            program = find_command(command.split()[0], variables)
            try:
                version = read_version(runner, program)
                for title, file in files:
                    source = _read_page_source(file)
                    draft.write_bytes(source)
                    source_format = "mdoc" if _MDOC.search(source) else "man"
                    renderer = renderers[source_format]
                    name = title.replace("-", " ")
                    page = renderer and renderer.render(runner, name, version, draft)
                    if page:
                        pages.append(page)
                    elif renderer is None:
                        warnings.append(
                            f"{name}: it is written in {source_format}, which needs mandoc;"
                            " it is left out"
                        )
                    else:
                        program_name = Path(renderer.argv[0]).name
                        warnings.append(
                            f"{name}: {program_name} cannot render its page; it is left out"
                        )
            except CallLimitReached:
                warnings.append(f"{command}: more than {max_calls:,} calls; the rest is left out")
                break
    return Corpus(tuple(pages), tuple(warnings))


def _find_renderers(path: str) -> dict[str, _Renderer | None]:
    """Return a renderer by format of man pages; None for a format without an installed renderer.

    pandoc's Markdown is preferred to mandoc's text.
    """
    mandoc, pandoc = (shutil.which(name, path=path) for name in ("mandoc", "pandoc"))
    text = _Renderer((mandoc, "-T", "utf8"), is_markdown=False) if mandoc else None
    markdown = ("-f", "man", "-t", "gfm", "--wrap=none", "--quiet", "--sandbox")
    return {
        "mdoc": _Renderer((mandoc, "-T", "markdown")) if mandoc else None,
        "man": _Renderer((pandoc, *markdown)) if pandoc else text,
    }


def _find_man_files(name: str, variables: Mapping[str, str]) -> list[tuple[str, Path]]:
    """Return the man pages of a command and its subcommands in section 1, as (title, file)."""
    configured = map(Path, variables.get("MANPATH", "").split(os.pathsep))
    files: dict[str, Path] = {}
    for root in [folder for folder in configured if folder.is_absolute()] or _DEFAULT_ROOTS:
        for file in sorted((root / "man1").glob(f"{name}*.1*")):
            title = file.name.partition(".1")[0]
            if title == name or title.startswith(f"{name}-"):
                files.setdefault(title, file)
    return sorted(files.items())


def _read_page_source(file: Path) -> bytes:
    """Return the source of a man page; for an alias, the source of the page that it names.

    An alias is followed only to a page below the same root folder of man pages.
    """
    root = file.parent.parent
    source = _read_decompressed(file)
    for _ in range(_MAX_ALIASES):
        alias = _ALIAS.match(source)
        if alias is None:
            break
        target = root / os.fsdecode(alias[1])
        candidates = (target, target.with_name(f"{target.name}.gz"))
        existing = next((path for path in candidates if path.is_file()), None)
        if existing is None or not existing.resolve().is_relative_to(root.resolve()):
            break
        source = _read_decompressed(existing)
    return source


def _read_decompressed(file: Path) -> bytes:
    with file.open("rb") as source:
        if file.suffix != ".gz":
            return source.read(MAX_BYTES)
        with gzip.open(source) as unpacked:
            return unpacked.read(MAX_BYTES)
