"""Loads the files of the example: a tree, records, people and judged questions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, Literal

HERE: Final = Path(__file__).resolve().parent
FILES: Final = HERE / "files"


@dataclass(frozen=True, slots=True)
class Person:
    """A person who asks questions.

    Attributes:
        name: the subject of their token.
        role: guests read only what names them or one of their groups.
        groups: that they are in.
    """

    name: str
    role: Literal["member", "guest"]
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A judged question.

    Attributes:
        half: `untouched` ones are asked to report, and nothing is chosen by them.
        asker: the name of a person who reads the record.
        type, record: what answers.
        block_id: the block that holds the answer; None where there are no blocks.
        answer: a few words of it, as they stand there.
    """

    id: str
    half: Literal["tuned", "untouched"]
    asker: str
    question: str
    type: str
    record: str
    block_id: str | None
    answer: str


def rows(name: str) -> list[dict[str, Any]]:
    """Return the rows of a file: tree, records, people or questions."""
    lines = (HERE / f"{name}.ndjson").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


@cache
def people() -> Mapping[str, Person]:
    """Return the people who ask questions, by name."""
    found = (Person(**{**row, "groups": tuple(row["groups"])}) for row in rows("people"))
    return {person.name: person for person in found}


@cache
def questions() -> tuple[Question, ...]:
    """Return the judged questions, in the order of the file."""
    return tuple(Question(**row) for row in rows("questions"))


def contents() -> dict[str, bytes]:
    """Return the contents of files, by the id of their record."""
    named = {row["id"]: row["name"] for row in rows("records") if row["type"] == "file"}
    return {id_: (FILES / name).read_bytes() for id_, name in named.items()}
