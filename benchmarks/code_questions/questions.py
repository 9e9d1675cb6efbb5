"""The questions, the places that answer them, and their two halves."""

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
"""Passages of an answer that are looked at."""
_SEED: Final = 19
_TABLE: Final = "table:"
_METHOD: Final = r"function\s+&?{name}\b"
_NEXT: Final = re.compile(r"^    (?:/\*\*|#\[|(?:\w+ )*function )", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Found:
    """A passage that a program found.

    Attributes:
        path: within the repository; "" for what is in no file of it.
        first, last: its lines; 0 where the program tells none.
        symbol: what it says that it is.
        text: of it.
    """

    path: str
    first: int = 0
    last: int = 0
    symbol: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Place:
    """One place that answers.

    Attributes:
        path: of the file.
        lines: of the method or the route that is meant; all of the file where none is.
        symbol: of what follows from several files, which is in none.
        named: a route, by which its derived document is known.
    """

    path: str = ""
    lines: tuple[int, int] | None = None
    symbol: str = ""
    named: str = ""

    def is_in(self, found: Found) -> bool:
        """Whether a passage shows it."""
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
    """A question, with what answers it.

    Attributes:
        answer: places that answer together, each with its equals.
        tuned: whether it is of the half that changes were chosen by.
    """

    id: str
    kind: str
    question: str
    answer: tuple[tuple[Place, ...], ...]
    tuned: bool

    def recall(self, found: Sequence[Found]) -> float:
        """The share of its places among the first passages."""
        first = found[:DEPTH]
        met = (any(one.is_in(hit) for one in equal for hit in first) for equal in self.answer)
        return sum(met) / len(self.answer)

    def missed(self, found: Sequence[Found]) -> list[str]:
        """The places that are not among the first passages, for people."""
        first = found[:DEPTH]
        return [
            " | ".join(one.symbol or f"{one.path}:{(one.lines or ('',))[0]}" for one in equal)
            for equal in self.answer
            if not any(one.is_in(hit) for one in equal for hit in first)
        ]


def application() -> tuple[str, str]:
    """The repository's address and the commit that the questions are about."""
    told = _written()["application"]
    return str(told["repository"]), str(told["commit"])


def questions(root: Path) -> list[Question]:
    """The questions, with the lines of their places.

    Args:
        root: of the repository at its commit.
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
    """The half of each kind that changes may be chosen by, drawn by a fixed seed."""
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
    """The place that a line of the judgements means (see questions.yaml)."""
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
    """The lines of a method, from its name to what comes after it."""
    found = re.search(_METHOD.format(name=re.escape(method)), text)
    if found is None:
        raise ValueError(f"there is no method {method}")
    after = _NEXT.search(text, found.end())
    end = len(text) if after is None else after.start() - 1
    return text[: found.start()].count("\n") + 1, text[:end].rstrip().count("\n") + 1
