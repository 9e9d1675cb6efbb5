"""Judged questions as a BEIR folder: queries.jsonl, and qrels as tab-separated values."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rag_assets.common.errors import ConfigurationError
from rag_assets.quality.judgements import JudgedQuestion, Judgement
from rag_assets.quality.lines import (
    Entry,
    Lines,
    ReadJudgement,
    grade_fault,
    least_fault,
    question_fault,
    text_fault,
)

QUERIES = "queries.jsonl"
_QRELS = "qrels"
_DEFAULT_SPLIT = "test"
_COLUMNS = 3
_HEAD = "query-id\tcorpus-id\tscore"
RELEVANT_FROM = 1
"""The lowest grade that counts as relevant in BEIR sets."""


def find_qrels_file(folder: Path, split: str | None) -> Path:
    """Return the file of qrels in a folder.

    Args:
        folder: a folder that has queries.jsonl.
        split: the part of the set, such as "test", "dev" or "train"; by default the only part,
            or "test".

    Raises:
        ConfigurationError: qrels for the split are missing, or a split must be chosen.
    """
    found = {path.stem: path for path in sorted((folder / _QRELS).glob("*.tsv"))}
    if not found and (single := folder / f"{_QRELS}.tsv").is_file():
        found = {_DEFAULT_SPLIT: single}
    if split is None:
        split = next(iter(found)) if len(found) == 1 else _DEFAULT_SPLIT
    if split not in found:
        splits = f"choose one of its splits with --split: {', '.join(found)}" if found else None
        raise ConfigurationError(
            f"{folder.name}: the folder has no qrels for the split {split!r}",
            hint=splits or f"add the file {_QRELS}/{_DEFAULT_SPLIT}.tsv",
        )
    return found[split]


def read_queries(path: Path, lines: Lines) -> dict[str, Entry]:
    """Read the questions of queries.jsonl, by id, without judgements."""
    found: dict[str, Entry] = {}
    for number, line in enumerate(lines.text_of(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            given = json.loads(line)
        except ValueError:
            lines.add(number, "the line is not valid JSON")
            continue
        if not isinstance(given, Mapping):
            lines.add(number, "a query must have _id and text")
        elif (entry := _parse_query(given, number, lines)) is not None:
            if entry.id in found:
                lines.add(number, f"the _id is already used in line {found[entry.id].place.line}")
            found.setdefault(entry.id, entry)
    return found


def read_qrels(path: Path, queries: Mapping[str, Entry], lines: Lines) -> list[Entry]:
    """Read the judged questions, with their judgements.

    Args:
        path: the file of qrels.
        queries: all questions, by id.
        lines: collects the faults of the file.
    """
    judged: dict[str, Entry] = {}
    for number, line in enumerate(lines.text_of(path).split("\n"), start=1):
        cells = [cell.strip() for cell in line.rstrip("\r").split("\t")]
        if cells == [""] or (number == 1 and cells == _HEAD.split("\t")):
            continue
        fault = _find_row_fault(cells, queries)
        if fault is not None:
            lines.add(number, fault)
            continue
        query, document, grade = cells
        # Grades below 0 count as 0, as in trec_eval.
        judgement = Judgement(document, grade=max(0, int(grade)))
        entry = judged.setdefault(query, queries[query])
        entry.judgements.append(ReadJudgement(judgement, lines.place(number)))
    return list(judged.values())


def write_beir(folder: Path, questions: Sequence[JudgedQuestion]) -> int:
    """Write questions as a BEIR folder, with the best judgement of each document.

    Returns:
        The number of quotes that were left out, since qrels have no quotes.
    """
    (folder / _QRELS).mkdir(parents=True, exist_ok=True)
    queries = "".join(
        f"{json.dumps(_format_query(one), ensure_ascii=False)}\n" for one in questions
    )
    (folder / QUERIES).write_text(queries, encoding="utf-8")
    rows = "".join(f"{row}\n" for question in questions for row in _format_rows(question))
    (folder / _QRELS / f"{_DEFAULT_SPLIT}.tsv").write_text(f"{_HEAD}\n{rows}", encoding="utf-8")
    return sum(j.quote is not None for question in questions for j in question.relevant)


def _parse_query(given: Mapping[str, Any], number: int, lines: Lines) -> Entry | None:
    id_, question = given.get("_id"), given.get("text")
    faults = (text_fault(id_, "_id"), question_fault(question))
    if wrong := [fault for fault in faults if fault]:
        for fault in wrong:
            lines.add(number, fault)
        return None
    # write_beir adds this metadata; other sets have different metadata, or none.
    said = given.get("metadata")
    metadata: Mapping[str, Any] = said if isinstance(said, Mapping) else {}
    kind, least = metadata.get("kind"), metadata.get("relevant_from")
    judged = JudgedQuestion(
        str(id_),
        kind if isinstance(kind, str) and text_fault(kind, "kind") is None else "",
        str(question),
        relevant_from=least
        if isinstance(least, int) and least_fault(least) is None
        else RELEVANT_FROM,
        synthetic=metadata.get("synthetic") is True,
    )
    return Entry(judged.id, lines.place(number), judged)


def _find_row_fault(cells: Sequence[str], queries: Mapping[str, Entry]) -> str | None:
    if len(cells) != _COLUMNS:
        return f"the line has {len(cells)} columns, but needs query-id, corpus-id and score"
    query, document, grade = cells
    if query not in queries:
        return f"{QUERIES} has no query with this id"
    if (fault := text_fault(document, "corpus-id")) is not None:
        return fault
    try:
        return grade_fault(max(0, int(grade)))
    except ValueError:
        return "the score must be a whole number"


def _format_query(question: JudgedQuestion) -> dict[str, Any]:
    facts = {
        "kind": (question.kind, ""),
        "relevant_from": (question.relevant_from, RELEVANT_FROM),
        "synthetic": (question.synthetic, False),
    }
    metadata = {name: value for name, (value, default) in facts.items() if value != default}
    return {"_id": question.id, "text": question.question, "metadata": metadata}


def _format_rows(question: JudgedQuestion) -> Iterator[str]:
    grades: dict[str, int] = {}
    for judgement in question.relevant:
        grades[judgement.path] = max(judgement.grade, grades.get(judgement.path, 0))
    yield from (f"{question.id}\t{path}\t{grade}" for path, grade in grades.items())
