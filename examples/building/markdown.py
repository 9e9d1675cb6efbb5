"""The little Markdown that the sources are written in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

_MARKED = re.compile(r"\*\*(.+?)\*\*|`(.+?)`")


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of level 1 or 2."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph; in slides, a quoted one is what the speaker says."""

    text: str
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """A list, and whether it is numbered."""

    items: tuple[str, ...]
    numbered: bool


@dataclass(frozen=True, slots=True)
class Table:
    """A pipe table; its first row is the header."""

    rows: tuple[tuple[str, ...], ...]


Block: TypeAlias = Heading | Paragraph | Listing | Table
Mark = Literal["plain", "strong", "code"]


def front_and_text(source: str) -> tuple[dict[str, Any], str]:
    """The front matter, and what follows it."""
    from ruamel.yaml import YAML

    _, head, text = source.split("---\n", 2)
    return YAML(typ="safe").load(head), text


def blocks(text: str) -> Iterator[Block]:
    """The blocks of a text, which blank lines part."""
    for part in filter(None, (part.strip() for part in text.split("\n\n"))):
        lines = part.splitlines()
        if part.startswith("#"):
            marks, heading = part.split(" ", 1)
            yield Heading(len(marks), heading)
        elif part.startswith("|"):
            rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines]
            yield Table((rows[0], *rows[2:]))
        elif re.match(r"- |\d+\. ", part):
            yield Listing(tuple(line.split(" ", 1)[1] for line in lines), not part.startswith("-"))
        elif part.startswith(">"):
            yield Paragraph(" ".join(line.lstrip("> ") for line in lines), quoted=True)
        else:
            yield Paragraph(" ".join(lines))


def runs(text: str) -> Iterator[tuple[Mark, str]]:
    """A paragraph's text, piece by piece, with how each is marked."""
    done = 0
    for match in _MARKED.finditer(text):
        if match.start() > done:
            yield "plain", text[done : match.start()]
        yield ("strong", match[1]) if match[1] else ("code", match[2])
        done = match.end()
    if done < len(text):
        yield "plain", text[done:]
