"""The questions, the locations that answer them, and their two halves."""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

QUESTIONS: Final = Path(__file__).with_name("questions.yaml")
MULTI_HOP, SINGLE_HOP = "multi-hop", "single-hop"
DEPTH: Final = 10
"""Number of passages of an answer that are judged."""
_SEED: Final = 19
_TABLE: Final = "table:"
_METHOD: Final = r"function\s+&?{name}\b"
_NEXT: Final = re.compile(r"^    (?:/\*\*|#\[|(?:\w+ )*function )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Found:
    """A passage that a program found.

    Attributes:
        path: within the repository; "" for a passage outside its files.
        first, last: its lines; 0 if the program does not report them.
        symbol: name that the program reports for the passage.
    """

    path: str
    first: int = 0
    last: int = 0
    symbol: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """A location that answers a question.

    Attributes:
        path: path of the file.
        lines: first and last line of the method or route; None for the whole file.
        symbol: a symbol derived from several files, such as a table; it has no path.
        named: name of a route, which also identifies its derived document.
    """

    path: str = ""
    lines: tuple[int, int] | None = None
    symbol: str = ""
    named: str = ""

    def is_in(self, found: Found) -> bool:
        """Return whether a passage shows this location."""
        if self.symbol:
            return found.symbol == self.symbol
        if self.named and found.symbol.startswith("route:"):
            return found.symbol.endswith(f"/{self.named}")
        if found.path != self.path:
            return False
        if self.lines is None or not found.first:
            return True
        return found.first <= self.lines[1] and self.lines[0] <= found.last


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its answer.

    Attributes:
        answer: locations that answer together; each is a tuple of alternatives.
        tuned: whether it is in the half used to choose changes.
    """

    id: str
    kind: str
    question: str
    answer: tuple[tuple[Place, ...], ...]
    tuned: bool

    def recall(self, found: Sequence[Found]) -> float:
        """Return the share of its locations among the first passages."""
        first = found[:DEPTH]
        met = (any(one.is_in(hit) for one in equal for hit in first) for equal in self.answer)
        return sum(met) / len(self.answer)

    def missed(self, found: Sequence[Found]) -> list[str]:
        """Return the locations that are not among the first passages, formatted for people."""
        first = found[:DEPTH]
        return [
            " | ".join(one.symbol or f"{one.path}:{(one.lines or ('',))[0]}" for one in equal)
            for equal in self.answer
            if not any(one.is_in(hit) for one in equal for hit in first)
        ]


def application() -> tuple[str, str]:
    """Return the repository's address and the commit that the questions are about."""
    told = _written()["application"]
    return str(told["repository"]), str(told["commit"])


def questions(root: Path) -> list[Question]:
    """Return the questions, with the lines of their locations.

    Args:
        root: the repository at its commit.
    """
    written = _written()["questions"]
    tuned = halves((one["id"], one["kind"]) for one in written)
    return [
        Question(
            one["id"],
            one["kind"],
            one["question"],
            tuple(tuple(place(root, at) for at in line.split(" | ")) for line in one["answer"]),
            one["id"] in tuned,
        )
        for one in written
    ]


def halves(ids: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Return half of the ids of each kind, drawn with a fixed seed: changes may be tuned on it."""
    by_kind: dict[str, list[str]] = {}
    for id_, kind in ids:
        by_kind.setdefault(kind, []).append(id_)
    drawn: set[str] = set()
    for kind, of_kind in sorted(by_kind.items()):
        ordered = sorted(of_kind)
        random.Random(f"{_SEED}:{kind}").shuffle(ordered)
        drawn |= set(ordered[: len(ordered) // 2])
    return frozenset(drawn)


def _written() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(QUESTIONS.read_text())
    return found


def place(root: Path, at: str) -> Place:
    """Parse one location of an answer in questions.yaml."""
    if at.startswith(_TABLE):
        return Place(symbol=at)
    path, _, name = at.partition("::")
    path, _, route = path.partition("#")
    text = (root / path).read_text() if name or route else ""
    if route:
        line = text[: text.index(f"'{route}'")].count("\n") + 1
        return Place(path, (line, line), named=route)
    return Place(path, _lines(text, name) if name else None)


def _lines(text: str, method: str) -> tuple[int, int]:
    """Return the first and last line of a method."""
    found = re.search(_METHOD.format(name=re.escape(method)), text)
    if found is None:
        raise ValueError(f"there is no method {method}")
    after = _NEXT.search(text, found.end())
    end = len(text) if after is None else after.start() - 1
    return text[: found.start()].count("\n") + 1, text[:end].rstrip().count("\n") + 1
