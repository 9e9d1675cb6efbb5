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
        hits = (
            any(location.is_in(hit) for location in equal for hit in first) for equal in self.answer
        )
        return sum(hits) / len(self.answer)

    def list_missed(self, passages: Sequence[FoundPassage]) -> list[str]:
        """Return the locations that are not among the first passages, formatted for people."""
        first = passages[:DEPTH]
        return [
            " | ".join(
                location.symbol or f"{location.path}:{(location.lines or ('',))[0]}"
                for location in equal
            )
            for equal in self.answer
            if not any(location.is_in(hit) for location in equal for hit in first)
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
    entries = _read_yaml()["questions"]
    tuned = draw_tuned_half((entry["id"], entry["kind"]) for entry in entries)
    return [
        Question(
            entry["id"],
            entry["kind"],
            entry["question"],
            tuple(
                tuple(parse_location(root, at) for at in line.split(" | "))
                for line in entry["answer"]
            ),
            entry["id"] in tuned,
        )
        for entry in entries
    ]


def draw_tuned_half(ids: Iterable[tuple[str, str]]) -> frozenset[str]:
    """Return half of the ids of each kind, drawn with a fixed seed: changes may be tuned on it."""
    by_kind: dict[str, list[str]] = {}
    for id_, kind in ids:
        by_kind.setdefault(kind, []).append(id_)
    tuned_ids: set[str] = set()
    for kind, ids_of_kind in sorted(by_kind.items()):
        ordered = sorted(ids_of_kind)
        random.Random(f"{_SEED}:{kind}").shuffle(ordered)
        tuned_ids |= set(ordered[: len(ordered) // 2])
    return frozenset(tuned_ids)


def _read_yaml() -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(QUESTIONS.read_text())
    return content


def parse_location(root: Path, location: str) -> AnswerLocation:
    """Parse one location of an answer in questions.yaml."""
    if location.startswith(_TABLE):
        return AnswerLocation(symbol=location)
    path, _, name = location.partition("::")
    path, _, route = path.partition("#")
    text = (root / path).read_text() if name or route else ""
    if route:
        line = text[: text.index(f"'{route}'")].count("\n") + 1
        return AnswerLocation(path, (line, line), route=route)
    return AnswerLocation(path, _find_method_lines(text, name) if name else None)


def _find_method_lines(text: str, method: str) -> tuple[int, int]:
    """Return the first and last line of a method."""
    match = re.search(_METHOD.format(name=re.escape(method)), text)
    if match is None:
        raise ValueError(f"the file has no method {method}")
    after = _NEXT.search(text, match.end())
    end = len(text) if after is None else after.start() - 1
    return text[: match.start()].count("\n") + 1, text[:end].rstrip().count("\n") + 1
