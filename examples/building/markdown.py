"""Parses the subset of Markdown in which the sources are written."""

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
    """A paragraph; a quoted paragraph in slides is a speaker note."""

    text: str
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Listing:
    """A bulleted or numbered list."""

    items: tuple[str, ...]
    numbered: bool


@dataclass(frozen=True, slots=True)
class Table:
    """A pipe table; its first row is the header."""

    rows: tuple[tuple[str, ...], ...]


Block: TypeAlias = Heading | Paragraph | Listing | Table
Mark = Literal["plain", "strong", "code"]


def front_and_text(source: str) -> tuple[dict[str, Any], str]:
    """Return the front matter and the text after it."""
    from ruamel.yaml import YAML

    _, head, text = source.split("---\n", 2)
    return YAML(typ="safe").load(head), text


def blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a text, which blank lines separate."""
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
    """Yield the spans of a paragraph's text with their markup."""
    done = 0
    for match in _MARKED.finditer(text):
        if match.start() > done:
            yield "plain", text[done : match.start()]
        yield ("strong", match[1]) if match[1] else ("code", match[2])
        done = match.end()
    if done < len(text):
        yield "plain", text[done:]
