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
class FoundPassage:
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
class AnswerLocation:
    """A location that answers a question.

    Attributes:
        path: path of the file.
        lines: first and last line of the method or route; None for the whole file.
        symbol: a symbol derived from several files, such as a table; it has no path.
        route: name of a route, which also identifies its derived document.
    """

    path: str = ""
    lines: tuple[int, int] | None = None
    symbol: str = ""
    route: str = ""

    def is_in(self, passage: FoundPassage) -> bool:
        """Return whether a passage shows this location."""
        if self.symbol:
            return passage.symbol == self.symbol
        if self.route and passage.symbol.startswith("route:"):
            return passage.symbol.endswith(f"/{self.route}")
        if passage.path != self.path:
            return False
        if self.lines is None or not passage.first:
            return True
        return passage.first <= self.lines[1] and self.lines[0] <= passage.last


@dataclass(frozen=True, slots=True)
class Question:
    """A question and its answer.

    Attributes:
        answer: locations that answer together; each is a tuple of alternatives.
        is_tuned: whether it is in the half used to choose changes.
    """

    id: str
    kind: str
    question: str
    answer: tuple[tuple[AnswerLocation, ...], ...]
    is_tuned: bool

    def recall(self, passages: Sequence[FoundPassage]) -> float:
        """Return the share of its locations among the first passages."""
        first = passages[:DEPTH]
        hits = (any(one.is_in(hit) for one in equal for hit in first) for equal in self.answer)
        return sum(hits) / len(self.answer)

    def list_missed(self, passages: Sequence[FoundPassage]) -> list[str]:
        """Return the locations that are not among the first passages, formatted for people."""
        first = passages[:DEPTH]
        return [
            " | ".join(one.symbol or f"{one.path}:{(one.lines or ('',))[0]}" for one in equal)
            for equal in self.answer
            if not any(one.is_in(hit) for one in equal for hit in first)
        ]


def read_application() -> tuple[str, str]:
    """Return the repository's address and the commit that the questions are about."""
    entry = _read_yaml()["application"]
    return str(entry["repository"]), str(entry["commit"])


def read_questions(root: Path) -> list[Question]:
    """Return the questions, with the lines of their locations.

    Args:
        root: the repository at its commit.
    """
    written = _read_yaml()["questions"]
    tuned = draw_tuned_half((one["id"], one["kind"]) for one in written)
    return [
        Question(
            one["id"],
            one["kind"],
            one["question"],
            tuple(
                tuple(parse_location(root, at) for at in line.split(" | "))
                for line in one["answer"]
            ),
            one["id"] in tuned,
        )
        for one in written
    ]


def draw_tuned_half(ids: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Return half of the ids of each kind, drawn with a fixed seed: changes may be tuned on it."""
    by_kind: dict[str, list[str]] = {}
    for id_, kind in ids:
        by_kind.setdefault(kind, []).append(id_)
    drawn: set[str] = set()
    for kind, ids_of_kind in sorted(by_kind.items()):
        ordered = sorted(ids_of_kind)
        random.Random(f"{_SEED}:{kind}").shuffle(ordered)
        drawn |= set(ordered[: len(ordered) // 2])
    return frozenset(drawn)


def _read_yaml() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(QUESTIONS.read_text())
    return content


def parse_location(root: Path, text_of_location: str) -> AnswerLocation:
    """Parse one location of an answer in questions.yaml."""
    if text_of_location.startswith(_TABLE):
        return AnswerLocation(symbol=text_of_location)
    path, _, name = text_of_location.partition("::")
    path, _, route = path.partition("#")
    text = (root / path).read_text() if name or route else ""
    if route:
        line = text[: text.index(f"'{route}'")].count("\n") + 1
        return AnswerLocation(path, (line, line), route=route)
    return AnswerLocation(path, _find_method_lines(text, name) if name else None)


def _find_method_lines(text: str, method: str) -> tuple[int, int]:
    """Return the first and last line of a method."""
    found = re.search(_METHOD.format(name=re.escape(method)), text)
    if found is None:
        raise ValueError(f"there is no method {method}")
    after = _NEXT.search(text, found.end())
    end = len(text) if after is None else after.start() - 1
    return text[: found.start()].count("\n") + 1, text[:end].rstrip().count("\n") + 1
