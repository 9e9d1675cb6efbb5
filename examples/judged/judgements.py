"""The judged questions over the handbook and the annex.

Their files can be imported for a tenant: `rag-assets judgements import TENANT examples/judged`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from rag_assets.quality.files import read_judgements
from rag_assets.quality.judgements import JudgedQuestion

HERE = Path(__file__).resolve().parent
ANNEX = HERE / "annex"
POOL = HERE / "pool.json"


@cache
def judged_questions() -> tuple[JudgedQuestion, ...]:
    """Return the questions on the handbook, then the others, with judgements from pooling."""
    return read_judgements([HERE]).questions


def save_pool(pool: Mapping[str, Iterable[str]]) -> None:
    """Save the hashes of the passages that people read, by question id."""
    lines = [f"{json.dumps(id_)}: {json.dumps(sorted(pool[id_]))}" for id_ in pool]
    POOL.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def halves(
    questions: Iterable[JudgedQuestion],
) -> tuple[list[JudgedQuestion], list[JudgedQuestion]]:
    """Split questions into two halves, alternating within each kind, to tune and to report."""
    seen: dict[str, int] = {}
    parts: tuple[list[JudgedQuestion], list[JudgedQuestion]] = ([], [])
    for question in questions:
        number = seen.get(question.kind, 0)
        seen[question.kind] = number + 1
        parts[number % 2].append(question)
    return parts
