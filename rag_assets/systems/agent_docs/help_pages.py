"""Pages made from the help of commands and their subcommands.

Recognizes the formats of argparse, click, cobra, clap, git and the aws command line.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from rag_assets.common.errors import ConfigurationError
from rag_assets.systems.agent_docs.calls import (
    Caller,
    Said,
    TooManyCalls,
    executable,
    plain,
    version_of,
)
from rag_assets.systems.agent_docs.man_pages import commands_of, is_docutils, markdown_of
from rag_assets.systems.agent_docs.pages import (
    Corpus,
    Page,
    page_of_help,
    without_name,
    without_repeated,
)

_NAME = r"[a-z0-9][A-Za-z0-9_.:+-]{0,60}"
_HEADING = re.compile(
    r"(?:\S+ ){0,5}(?:sub)?(?:commands|services)\b(?:\W| are:?$|$).*", re.IGNORECASE
)
_LONGEST_HEADING = 60
_ARGUMENT = r"(?: (?:\[[^\]]{1,60}\]|<[^>]{1,60}>|\.\.\.))"
_ENTRY = re.compile(
    rf"^\s{{1,8}}(?P<name>{_NAME})(?:, {_NAME})*\*?{_ARGUMENT}{{0,9}}"
    r"(?::?\s{2,}(?P<about>\S.*)|:? *)$"
)
_OWNER = re.compile(r"\[[\w.-]+\]")
"""Above commands of an application, in a list of Django's."""
_BULLET = re.compile(rf"^\s+[o*•]\s+(?P<name>{_NAME})\s*$")
_BRACES = re.compile(r"(?<!=)\{(?P<names>[\w.-]+(?:,[\w.-]+)*)\}")
_GIT_GROUP = re.compile(r"^[a-z][a-z ,]+(?: \(see also: [^)]+\))?$")
_NO_COMMANDS: Final = frozenset({"help", "completion", "completions"})


def subcommands(text: str) -> dict[str, str]:
    """What looks like subcommands, in order, with what is said of each; who runs them learns more.

    Args:
        text: plain help.
    """
    found: dict[str, str] = {}
    for name, about in (*_listed(text), *((name, "") for name in _braced(text))):
        if name not in _NO_COMMANDS:
            found[name] = found.get(name) or about
    return found


def _listed(text: str) -> Iterator[tuple[str, str]]:
    """Names in lists below a heading that speaks of commands, and what stands beside them."""
    within = git = False
    for line in text.split("\n"):
        if line.strip() and not line[0].isspace():
            # git's groups have headings of their own below one line on commands.
            if within and _OWNER.fullmatch(line.strip()):
                continue
            git = git or line.startswith("These are common")
            within = _speaks_of_commands(line.strip()) or (git and bool(_GIT_GROUP.match(line)))
            continue
        if within and (entry := _ENTRY.match(line) or _BULLET.match(line)) is not None:
            yield entry["name"], (entry.groupdict().get("about") or "").strip()


def _speaks_of_commands(line: str) -> bool:
    return len(line) <= _LONGEST_HEADING and _HEADING.fullmatch(line) is not None


def _braced(text: str) -> Iterator[str]:
    """The choices of argparse's positional argument, in its usage."""
    usage = text.partition("\n\n")[0]
    if not usage.lower().startswith("usage:"):
        return
    joined = " ".join(usage.split())
    # Choices of options stand after their option.
    joined = re.sub(r"-{1,2}[\w-]+[ =]\{[^}]*\}", "", joined)
    for found in _BRACES.finditer(joined):
        yield from found["names"].split(",")


_ASK: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = {
    "git": (("-h",),),
    "aws": (("help",), ("--help",)),
}
"""How some programs want to be asked; others by --help, -h or help."""
_RENDERED: Final = frozenset({"aws"})
"""Programs that have their man pages rendered; we want the pages themselves."""
_LISTS: Final[Mapping[str, tuple[str, ...]]] = {"git": ("help", "-a")}
"""How some programs list all of their subcommands; their help names a few."""
_ASKED: Final = (("--help",), ("-h",), ("help",))
_USAGE_CODES: Final = frozenset({0, 1, 2, 129})
"""Exit codes of programs that print their help; git says 129."""
_WORD = re.compile(r"[A-Za-z0-9_][\w.+-]*")


def pages_of_help(
    commands: Sequence[str],
    depth: int,
    variables: Mapping[str, str],
    *,
    calls: int,
    progress: Callable[[str], None] = lambda _: None,
) -> Corpus:
    """Pages of the help of commands and their subcommands.

    Only these commands are run.

    Args:
        commands: names in the path, or with some of their subcommands: `git`, `aws s3`.
        depth: of subcommands below each.
        variables: of the environment.
        calls: of commands, at most.
        progress: takes the name of each command that was read.

    Raises:
        ConfigurationError: a command is not installed, or says nothing.
    """
    pages: list[Page] = []
    warnings: list[str] = []
    with (
        tempfile.TemporaryDirectory(prefix="rag-assets-help-") as home,
        tempfile.TemporaryDirectory(prefix="rag-assets-tools-") as tools,
    ):
        caller = Caller(Path(home), variables, calls=calls)
        _write_renderer(Path(tools))
        for command in commands:
            tree = _Tree(caller, command.split(), variables, warnings, Path(tools))
            try:
                for page in tree.pages(depth):
                    pages.append(page)
                    progress(page.command)
            except TooManyCalls:
                warnings.append(f"{command}: more than {calls:,} calls; the rest is left out")
                break
    return Corpus(tuple(pages), tuple(warnings))


class _Tree:
    """The commands below one that was named."""

    def __init__(
        self,
        caller: Caller,
        words: Sequence[str],
        variables: Mapping[str, str],
        warnings: list[str],
        tools: Path,
    ) -> None:
        self._caller = caller
        self._words = list(words)
        # What the first one answers to, subcommands are asked by: a plain word might be obeyed.
        self._asked = _ASK.get(Path(self._words[0]).name if words else "", _ASKED)
        self._program = executable(self._words[0] if self._words else "", variables)
        self._tools = tools if Path(self._program).name in _RENDERED else None
        self._known: dict[str, str] = {}
        self._warnings = warnings
        self._version = version_of(caller, self._program)

    def pages(self, depth: int) -> Iterator[Page]:
        text = self._help(self._words)
        if not text:
            raise ConfigurationError(
                f"{' '.join(self._words)} prints no help", hint="name a command that has --help"
            )
        todo = [(self._words, text, depth, "")]
        while todo:
            words, text, below, about = todo.pop()
            command = " ".join(words)
            if is_docutils(text):
                page = Page(command, self._version, without_name(markdown_of(text)))
            else:
                page = page_of_help(command, self._version, text, about)
            yield without_repeated(page, self._known)
            if below > 0:
                todo += reversed(list(self._below(words, text, below - 1)))

    def _below(
        self, words: list[str], text: str, depth: int
    ) -> Iterator[tuple[list[str], str, int, str]]:
        if is_docutils(text):
            listed = dict.fromkeys(commands_of(markdown_of(text)), "")
        else:
            listed = subcommands(self._list(words) or text)
        for name, about in listed.items():
            if not _WORD.fullmatch(name) or name == words[-1]:
                continue
            own = self._help([*words, name])
            # Who does not know a subcommand shows its own help again, or none.
            if own and own != text:
                yield [*words, name], own, depth, about

    def _list(self, words: Sequence[str]) -> str:
        ask = _LISTS.get(Path(words[0]).name) if len(words) == 1 else None
        return "" if ask is None else plain(self._said([self._program, *ask], words[0]).text)

    def _help(self, words: Sequence[str]) -> str:
        for ask in self._asked:
            said = self._said([self._program, *words[1:], *ask], " ".join(words))
            text = plain(said.text)
            if said.whole and said.code in _USAGE_CODES and _is_help(text):
                self._asked = (ask,)
                return text
            if said.code == 0:
                break
        return ""

    def _said(self, argv: Sequence[str], shown: str) -> Said:
        try:
            said = self._caller.run(argv, self._tools)
            if not said.whole:
                # A busy machine may have been too slow for it.
                said = self._caller.run(argv, self._tools)
        except OSError as error:
            raise ConfigurationError(
                f"{shown} cannot be started: {error.strerror}", hint="check its installation"
            ) from None
        if not said.whole:
            self._warnings.append(f"{shown}: it took too long or printed too much")
        return said


def _write_renderer(folder: Path) -> None:
    """Write a groff that hands a man page on as it is."""
    renderer = folder / "groff"
    renderer.write_text("#!/bin/sh\nexec cat\n")
    renderer.chmod(0o700)


def _is_help(text: str) -> bool:
    return len(text) > 20 and re.search(r"(?i)usage|synopsis|options|commands", text) is not None  # noqa: PLR2004
