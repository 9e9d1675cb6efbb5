"""The lines of judgement files: their content, and their faults."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from rag_assets.quality.judgements import JudgedQuestion, Judgement
from rag_assets.search.model import MAX_QUERY

MAX_NAME = 8_000
MAX_GRADE = 100


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file, counted from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}"


@dataclass(frozen=True, slots=True)
class ReadJudgement:
    """A judgement, and the line where it was read."""

    judgement: Judgement
    place: Place


@dataclass(slots=True)
class Entry:
    """The contents of a file for one question.

    Attributes:
        id: id of the question.
        question: the question without judgements; None if the file adds judgements to a known
            question.
        pool: hashes of passages that were read.
        is_whole: whether all judgements of the question are valid.
    """

    id: str
    place: Place
    question: JudgedQuestion | None
    judgements: list[ReadJudgement] = field(default_factory=list)
    pool: set[str] = field(default_factory=set)
    is_whole: bool = True


class Lines:
    """The faults of a file, line by line.

    Args:
        file: name of the file, as it is shown.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.wrong: list[tuple[int, str]] = []

    def add(self, line: int, reason: str) -> None:
        """Add the fault of a line; the reason must not quote a question or a document."""
        self.wrong.append((line, reason))

    def place(self, line: int) -> Place:
        """Return the location of a line."""
        return Place(self.file, line)

    def text_of(self, path: Path) -> str:
        """Return the text of a UTF-8 file; empty if it cannot be read."""
        try:
            return path.read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            self.add(error.object[: error.start].count(b"\n") + 1, "the line is not UTF-8")
        except OSError as error:
            self.add(1, f"the file cannot be read: {error.strerror or type(error).__name__}")
        return ""

    @property
    def described(self) -> list[str]:
        """Return every faulty line with its number and reason, in order."""
        return [f"{self.file}, line {line}: {reason}" for line, reason in sorted(self.wrong)]


def text_fault(value: object, what: str, most: int = MAX_NAME) -> str | None:
    """Return why a value cannot be stored as a text; None if it can.

    Args:
        value: the value as it was read.
        what: name of the value.
        most: maximum number of characters.
    """
    if not isinstance(value, str):
        return f"{what} is missing" if value is None else f"{what} must be a text"
    if not value.strip():
        return f"{what} is empty"
    if "\0" in value or not _is_encodable(value):
        return f"{what} has characters that cannot be stored"
    if len(value) > most:
        return f"{what} is longer than {most:,} characters"
    return None


def grade_fault(value: object, most: int = MAX_GRADE) -> str | None:
    """Return why a value is not a valid grade; None if it is one."""
    if isinstance(value, bool) or not isinstance(value, int):
        return "the grade must be a whole number"
    if not 0 <= value <= most:
        return f"the grade must be between 0 and {most}"
    return None


def least_fault(value: object) -> str | None:
    """Return why a value is not a valid lowest relevant grade; None if it is one."""
    if (fault := grade_fault(value)) is None and value == 0:
        fault = "grade 0 means irrelevant, so it cannot count as relevant"
    return fault


def question_fault(value: object) -> str | None:
    """Return why a value is not a valid question; None if it is one."""
    return text_fault(value, "the question", MAX_QUERY)


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
