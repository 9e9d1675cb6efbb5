"""Reads help texts: their subcommands and sections, whatever library wrote them.

Known are argparse, click, cobra, clap, git and the aws command line; see FORMS.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_OVERSTRUCK = re.compile(r".\x08")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")

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

FORMS: Final = ("argparse", "click", "cobra", "clap", "git", "aws")
"""Libraries and programs whose help is known."""


def plain(text: str) -> str:
    """A help text without overstriking, colours and control characters."""
    text = _OVERSTRUCK.sub("", text.replace("\r\n", "\n"))
    return _CONTROL.sub("", _ESCAPES.sub("", text)).strip("\n")


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


def sections(text: str) -> Iterator[tuple[str, str]]:
    """Headings and bodies of a plain help text; the first has no heading."""
    heading = ""
    lines: list[str] = []
    for line in text.split("\n"):
        if (name := _heading_of(line)) is not None:
            yield heading, "\n".join(lines).strip("\n")
            heading, lines = name, []
        else:
            lines.append(line)
    yield heading, "\n".join(lines).strip("\n")


def _heading_of(line: str) -> str | None:
    """The heading that a line is: it begins at the margin, and ends in a colon or shouts."""
    if not line or line[0].isspace() or len(line) > 80:  # noqa: PLR2004
        return None
    bare = line.rstrip()
    if bare.endswith(":") and not bare.lower().startswith("usage"):
        return bare[:-1]
    return bare.capitalize() if re.fullmatch(r"[A-Z][A-Z -]+", bare) else None
