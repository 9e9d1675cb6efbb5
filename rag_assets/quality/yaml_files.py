"""Judged questions as YAML or JSON: lists of questions, and mappings that add judgements to them.

- id: parent-time-off                # a list of questions
  kind: paraphrase                   # optional; "none": no answer
  question: How many weeks may the other parent stay at home?
  relevant:
    - {path: annex/people/leave.md, quote: The other parent has eight, grade: 3}

parent-time-off:                     # a mapping: judgements for questions that are known
  - {path: annex/people/pay.md, quote: paid in full, grade: 1}
  - 20fef5ef4f                       # the hash of a passage that was read and is irrelevant
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

from rag_assets.quality.judgements import ANSWERS, IN_PART, JudgedQuestion, Judgement
from rag_assets.search.model import MAX_QUERY

MAX_NAME = 8_000
MAX_GRADE = 100


@dataclass(frozen=True, slots=True)
class FileLine:
    """A line of a file, counted from 1."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}, line {self.line}"


@dataclass(frozen=True, slots=True)
class ReadJudgement:
    """A judgement, and the line from which it was read."""

    judgement: Judgement
    place: FileLine


@dataclass(slots=True)
class QuestionEntry:
    """The content of one file about one question."""

    id: str
    place: FileLine
    """The line where the question starts."""
    question: JudgedQuestion | None
    """The question without judgements; None if the file adds judgements to a known question."""
    judgements: list[ReadJudgement] = field(default_factory=list)
    pool: set[str] = field(default_factory=set)
    """Hashes of passages that were read."""
    is_whole: bool = True
    """Whether all judgements of the question are valid."""


class FileFaults:
    """Collects the faults of a file, line by line."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.wrong: list[tuple[int, str]] = []

    def add(self, line: int, reason: str) -> None:
        """Record a fault of a line; the reason must not quote a question or a document."""
        self.wrong.append((line, reason))

    def add_all(self, line: int, reasons: Iterable[str | None]) -> bool:
        """Record the faults of a line, if any, and return whether there is one."""
        faults = [(line, reason) for reason in reasons if reason]
        self.wrong += faults
        return bool(faults)

    def place(self, line: int) -> FileLine:
        """Return a line of this file as a location."""
        return FileLine(self.file, line)

    def read_text(self, path: Path) -> str:
        """Return the text of a UTF-8 file; if it cannot be read, record a fault and return ""."""
        try:
            return path.read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            self.add(error.object[: error.start].count(b"\n") + 1, "the line is not UTF-8")
        except OSError as error:
            self.add(1, f"the file cannot be read: {error.strerror or type(error).__name__}")
        return ""

    @property
    def descriptions(self) -> list[str]:
        """Return the faults in the order of their lines, each with its line number and reason."""
        return [f"{self.file}, line {line}: {reason}" for line, reason in sorted(self.wrong)]


def find_text_fault(value: object, noun: str, max_characters: int = MAX_NAME) -> str | None:
    """Return why a value cannot be stored as a text; None if it can."""
    if not isinstance(value, str):
        return f"{noun} is missing" if value is None else f"{noun} must be a text"
    if not value.strip():
        return f"{noun} is empty"
    if "\0" in value or not _is_encodable(value):
        return f"{noun} has characters that cannot be stored"
    if len(value) > max_characters:
        return f"{noun} is longer than {max_characters:,} characters"
    return None


def find_grade_fault(value: object) -> str | None:
    """Return why a value is not a valid grade; None if it is valid."""
    if isinstance(value, bool) or not isinstance(value, int):
        return "the grade must be a whole number"
    if not 0 <= value <= MAX_GRADE:
        return f"the grade must be between 0 and {MAX_GRADE}"
    return None


def find_lowest_grade_fault(value: object) -> str | None:
    """Return why a value is not a valid lowest relevant grade; None if it is valid."""
    if (fault := find_grade_fault(value)) is None and value == 0:
        fault = "grade 0 means irrelevant, so it cannot count as relevant"
    return fault


def find_question_fault(value: object) -> str | None:
    """Return why a value is not a valid question; None if it is valid."""
    return find_text_fault(value, "the question", MAX_QUERY)


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


_HASH = re.compile(r"[0-9a-f]{10}")
_QUESTION_FIELDS = ("id", "kind", "question", "relevant", "read", "relevant_from", "synthetic")
_JUDGEMENT_FIELDS = ("path", "quote", "grade")


def read_yaml(path: Path, lines: FileFaults) -> list[QuestionEntry]:
    """Read the questions and judgements of a file."""
    document = _load_yaml(path, lines)
    if isinstance(document, list):
        return list(_parse_questions(document, lines))
    if isinstance(document, Mapping):
        return list(_parse_additions(document, lines))
    if not lines.wrong:
        lines.add(
            1, "the file must be a list of questions, or a mapping of their ids to judgements"
        )
    return []


def format_yaml(questions: Sequence[JudgedQuestion]) -> str:
    """Format questions in the form that read_yaml reads."""
    from ruamel.yaml import YAML

    yaml = YAML()
    yaml.default_flow_style = None
    yaml.width = 1_000_000
    stream = StringIO()
    yaml.dump([to_mapping(question) for question in questions], stream)
    return stream.getvalue()


def to_mapping(question: JudgedQuestion) -> dict[str, Any]:
    """Return a question as a mapping for a YAML list, without values that equal the defaults."""
    optional = {
        "relevant_from": (question.relevant_from, IN_PART),
        "synthetic": (question.synthetic, False),
        "read": (sorted(question.pool), []),
    }
    return {
        "id": question.id,
        **({"kind": question.kind} if question.kind else {}),
        "question": question.question,
        "relevant": [to_judgement_mapping(judgement) for judgement in question.relevant],
        **{name: value for name, (value, default) in optional.items() if value != default},
    }


def to_judgement_mapping(judgement: Judgement) -> dict[str, Any]:
    """Return a judgement as a mapping of path, quote and grade."""
    quote = {} if judgement.quote is None else {"quote": judgement.quote}
    return {"path": judgement.path, **quote, "grade": judgement.grade}


def _load_yaml(path: Path, lines: FileFaults) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.constructor import DuplicateKeyError
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        return YAML(typ="rt", pure=True).load(lines.read_text(path))
    except DuplicateKeyError as error:
        # The parser's own message would quote the values.
        lines.add(_get_line_number(error), "a name occurs twice in one mapping")
    except MarkedYAMLError as error:
        lines.add(
            _get_line_number(error), f"the file is not valid YAML: {error.problem or 'unreadable'}"
        )
    except YAMLError:
        lines.add(1, "the file is not valid YAML")
    return None


def _get_line_number(error: Any) -> int:
    mark = error.problem_mark or error.context_mark
    return 1 if mark is None else int(mark.line) + 1


def _parse_questions(document: Any, lines: FileFaults) -> Iterator[QuestionEntry]:
    for at, item in enumerate(document):
        line = int(document.lc.item(at)[0]) + 1
        if not isinstance(item, Mapping):
            lines.add(line, "a question must be a mapping with id, question and relevant")
        elif (entry := _parse_question(item, line, lines)) is not None:
            yield entry


def _parse_question(fields: Any, line: int, lines: FileFaults) -> QuestionEntry | None:
    id_ = _id_to_text(fields.get("id"))
    relevant_from = fields.get("relevant_from", IN_PART)
    kind, synthetic = fields.get("kind", ""), fields.get("synthetic", False)
    faults = [
        *_find_unknown_fields(fields, _QUESTION_FIELDS),
        find_text_fault(id_, "the id"),
        find_question_fault(fields.get("question")),
        None if kind == "" else find_text_fault(kind, "the kind"),
        None if isinstance(synthetic, bool) else "synthetic must be true or false",
        find_lowest_grade_fault(relevant_from)
        and f"relevant_from: {find_lowest_grade_fault(relevant_from)}",
    ]
    relevant, read = fields.get("relevant", ()), fields.get("read", ())
    if not isinstance(relevant, list | tuple) or not isinstance(read, list | tuple):
        faults.append("relevant and read must be lists")
    if lines.add_all(line, faults):
        return None
    question = JudgedQuestion(
        str(id_),
        str(kind),
        str(fields["question"]),
        relevant_from=int(relevant_from),
        synthetic=synthetic,
    )
    entry = QuestionEntry(question.id, lines.place(line), question)
    _add_judgements(entry, relevant, line, lines)
    _add_judgements(entry, read, line, lines)
    return entry


def _parse_additions(document: Any, lines: FileFaults) -> Iterator[QuestionEntry]:
    for key, judgements in document.items():
        line = int(document.lc.key(key)[0]) + 1
        id_ = _id_to_text(key)
        if (fault := find_text_fault(id_, "the id")) is not None:
            lines.add(line, fault)
        elif not isinstance(judgements, list):
            lines.add(line, "the id of a question must be followed by a list of judgements")
        else:
            entry = QuestionEntry(str(id_), lines.place(line), None)
            _add_judgements(entry, judgements, line, lines)
            yield entry


def _add_judgements(entry: QuestionEntry, judgements: Any, line: int, lines: FileFaults) -> None:
    """Parse judgements and hashes into an entry; faults without a line belong to `line`."""
    for at, item in enumerate(judgements):
        its_line = int(judgements.lc.item(at)[0]) + 1 if hasattr(judgements, "lc") else line
        if isinstance(item, Mapping):
            _add_judgement(entry, item, its_line, lines)
        elif isinstance(item, str) and _HASH.fullmatch(item):
            entry.pool.add(str(item))
        else:
            entry.is_whole = False
            lines.add(
                its_line, "the item must be a judgement with a path, or the hash of a passage"
            )


def _add_judgement(
    entry: QuestionEntry, fields: Mapping[Any, Any], line: int, lines: FileFaults
) -> None:
    path, quote, grade = fields.get("path"), fields.get("quote"), fields.get("grade", ANSWERS)
    faults = [
        *_find_unknown_fields(fields, _JUDGEMENT_FIELDS),
        find_text_fault(path, "the path"),
        None if quote is None else find_text_fault(quote, "the quote"),
        find_grade_fault(grade),
    ]
    if lines.add_all(line, faults):
        entry.is_whole = False
        return
    judgement = Judgement(str(path), None if quote is None else str(quote), int(grade))
    entry.judgements.append(ReadJudgement(judgement, lines.place(line)))


def _find_unknown_fields(fields: Mapping[Any, Any], known: Sequence[str]) -> list[str | None]:
    more = [str(name) for name in fields if name not in known]
    return [
        f"unknown field {name[:40]!r}; the known fields are {', '.join(known)}" for name in more
    ]


def _id_to_text(value: object) -> object:
    """Return a numeric id as text; return any other value unchanged."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value
