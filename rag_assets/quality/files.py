"""Read and write files of judgements, and BEIR folders with queries.jsonl and qrels.

A file is read completely or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rag_assets.common.errors import ConfigurationError, WrongJudgements
from rag_assets.quality.judgements import UNANSWERED, JudgedQuestion, Judgement
from rag_assets.quality.yaml_files import (
    FileFaults,
    FileLine,
    QuestionEntry,
    ReadJudgement,
    find_grade_fault,
    find_lowest_grade_fault,
    find_question_fault,
    find_text_fault,
    read_yaml,
)

QUERIES = "queries.jsonl"
_QRELS = "qrels"
_DEFAULT_SPLIT = "test"
_COLUMNS = 3
_HEAD = "query-id\tcorpus-id\tscore"
RELEVANT_FROM = 1
"""The lowest grade that counts as relevant in BEIR sets."""


def find_qrels_file(folder: Path, split: str | None) -> Path:
    """Return the file of qrels in a folder for a split; by default the only split, or "test"."""
    qrels_files = {path.stem: path for path in sorted((folder / _QRELS).glob("*.tsv"))}
    if not qrels_files and (single := folder / f"{_QRELS}.tsv").is_file():
        qrels_files = {_DEFAULT_SPLIT: single}
    if split is None:
        split = next(iter(qrels_files)) if len(qrels_files) == 1 else _DEFAULT_SPLIT
    if split not in qrels_files:
        splits = (
            f"choose one of its splits with --split: {', '.join(qrels_files)}"
            if qrels_files
            else None
        )
        raise ConfigurationError(
            f"{folder.name}: the folder has no qrels for the split {split!r}",
            hint=splits or f"add the file {_QRELS}/{_DEFAULT_SPLIT}.tsv",
        )
    return qrels_files[split]


def read_queries(path: Path, lines: FileFaults) -> dict[str, QuestionEntry]:
    """Read the questions in a queries.jsonl file, by id; they have no judgements yet."""
    entries: dict[str, QuestionEntry] = {}
    for number, line in enumerate(lines.read_text(path).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            query = json.loads(line)
        except ValueError:
            lines.add(number, "the line is not valid JSON")
            continue
        if not isinstance(query, Mapping):
            lines.add(number, "a query must have _id and text")
        elif (entry := _parse_query(query, number, lines)) is not None:
            if entry.id in entries:
                lines.add(number, f"the _id is already used in line {entries[entry.id].place.line}")
            entries.setdefault(entry.id, entry)
    return entries


def read_qrels(
    path: Path, queries: Mapping[str, QuestionEntry], lines: FileFaults
) -> list[QuestionEntry]:
    """Read the judged questions, with their judgements."""
    judged: dict[str, QuestionEntry] = {}
    for number, line in enumerate(lines.read_text(path).split("\n"), start=1):
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
    """Write questions as a BEIR folder; return the number of quotes that it cannot contain."""
    (folder / _QRELS).mkdir(parents=True, exist_ok=True)
    queries = "".join(
        f"{json.dumps(_format_query(question), ensure_ascii=False)}\n" for question in questions
    )
    (folder / QUERIES).write_text(queries, encoding="utf-8")
    rows = "".join(f"{row}\n" for question in questions for row in _format_rows(question))
    (folder / _QRELS / f"{_DEFAULT_SPLIT}.tsv").write_text(f"{_HEAD}\n{rows}", encoding="utf-8")
    return sum(j.quote is not None for question in questions for j in question.relevant)


def _parse_query(query: Mapping[str, Any], number: int, lines: FileFaults) -> QuestionEntry | None:
    id_, question = query.get("_id"), query.get("text")
    if lines.add_all(number, (find_text_fault(id_, "_id"), find_question_fault(question))):
        return None
    # write_beir adds this metadata; other sets have different metadata, or none.
    metadata_field = query.get("metadata")
    metadata: Mapping[str, Any] = metadata_field if isinstance(metadata_field, Mapping) else {}
    kind, relevant_from = metadata.get("kind"), metadata.get("relevant_from")
    judged = JudgedQuestion(
        str(id_),
        kind if isinstance(kind, str) and find_text_fault(kind, "kind") is None else "",
        str(question),
        relevant_from=relevant_from
        if isinstance(relevant_from, int) and find_lowest_grade_fault(relevant_from) is None
        else RELEVANT_FROM,
        synthetic=metadata.get("synthetic") is True,
    )
    return QuestionEntry(judged.id, lines.place(number), judged)


def _find_row_fault(cells: Sequence[str], queries: Mapping[str, QuestionEntry]) -> str | None:
    if len(cells) != _COLUMNS:
        return f"the line has {len(cells)} columns, but needs query-id, corpus-id and score"
    query, document, grade = cells
    if query not in queries:
        return f"{QUERIES} has no query with this id"
    if (fault := find_text_fault(document, "corpus-id")) is not None:
        return fault
    try:
        return find_grade_fault(max(0, int(grade)))
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


SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class ReadQuestions:
    """The questions that were read from some files."""

    questions: tuple[JudgedQuestion, ...]
    """The questions, in the form in which they are stored."""
    places: Mapping[str, FileLine]
    """The first line that names each document path."""


def read_judgements(
    paths: Sequence[Path],
    present: Iterable[JudgedQuestion] = (),
    *,
    split: str | None = None,
    is_refused: Callable[[str], bool] = lambda _: False,
) -> ReadQuestions:
    """Read the questions in files, in the order of the files.

    Args:
        paths: YAML or JSON files, folders of these, and BEIR folders.
        present: stored questions, to which files may add judgements.
        is_refused: returns whether a text must not be stored, because it contains a credential.
    """
    read = [entries for path in paths for entries in _read_path(path, split)]
    wrong = [line for _, lines in read for line in lines.descriptions]
    entries = [entry for file_entries, _ in read for entry in file_entries]
    known = {question.id: question for question in present}
    questions, faults = _combine_entries(entries, known)
    refused = _find_refused_texts(entries, is_refused)
    if wrong := [*wrong, *faults, *refused]:
        raise WrongJudgements(wrong)
    places: dict[str, FileLine] = {}
    for judged in (judgement for entry in entries for judgement in entry.judgements):
        places.setdefault(judged.judgement.path, judged.place)
    return ReadQuestions(tuple(questions), places)


def _read_path(path: Path, split: str | None) -> Iterator[tuple[list[QuestionEntry], FileFaults]]:
    if (path / QUERIES).is_file():
        yield from _read_beir(path, split)
        return
    files = [path]
    if path.is_dir():
        files = [file for file in sorted(path.iterdir()) if file.suffix in SUFFIXES]
        if not files:
            raise ConfigurationError(
                f"{path.name}: the folder has no judgements",
                hint=f"add {QUERIES} and qrels, or files that end in {SUFFIXES[0]}",
            )
    for file in files:
        lines = FileFaults(file.name)
        yield read_yaml(file, lines), lines


def _read_beir(folder: Path, split: str | None) -> Iterator[tuple[list[QuestionEntry], FileFaults]]:
    qrels = find_qrels_file(folder, split)
    lines = FileFaults(QUERIES)
    queries = read_queries(folder / QUERIES, lines)
    yield [], lines
    lines = FileFaults(qrels.name)
    yield read_qrels(qrels, queries, lines), lines


def _combine_entries(
    entries: Sequence[QuestionEntry], present: Mapping[str, JudgedQuestion]
) -> tuple[list[JudgedQuestion], list[str]]:
    """Combine the entries for each question; return the questions and the faults in them."""
    faults: list[str] = []
    first: dict[str, QuestionEntry] = {}
    for entry in entries:
        if entry.question is None:
            continue
        if entry.id in first:
            faults.append(f"{entry.place}: the id is already used in {first[entry.id].place}")
        else:
            first[entry.id] = entry
    questions = {id_: entry.question for id_, entry in first.items() if entry.question is not None}
    where = {id_: entry.place for id_, entry in first.items()}
    # Put a question's own judgements first, in whatever order the files are read.
    for entry in sorted(entries, key=lambda entry: entry.question is None):
        question = questions.get(entry.id) or present.get(entry.id)
        if question is None:
            faults.append(f"{entry.place}: no question has this id")
            continue
        where.setdefault(entry.id, entry.place)
        questions[entry.id] = replace(
            question,
            relevant=_merge_judgements(question.relevant, entry.judgements),
            pool=question.pool | entry.pool,
        )
        faults += _find_duplicates(entry.judgements)
    partly = {entry.id for entry in entries if not entry.is_whole}
    faults += [
        f"{where[id_]}: {fault}"
        for id_, question in questions.items()
        if id_ not in partly and (fault := _find_question_fault(question))
    ]
    return list(questions.values()), faults


def _merge_judgements(
    present: Sequence[Judgement], added: Sequence[ReadJudgement]
) -> tuple[Judgement, ...]:
    by_passage = {(judgement.path, judgement.quote): judgement for judgement in present}
    new = (read.judgement for read in added)
    return tuple(
        (by_passage | {(judgement.path, judgement.quote): judgement for judgement in new}).values()
    )


def _find_duplicates(judgements: Sequence[ReadJudgement]) -> Iterator[str]:
    seen: dict[tuple[str, str | None], FileLine] = {}
    for read in judgements:
        key = (read.judgement.path, read.judgement.quote)
        if key in seen:
            yield f"{read.place}: this passage is already judged in line {seen[key].line}"
        seen.setdefault(key, read.place)


def _find_question_fault(question: JudgedQuestion) -> str | None:
    if question.kind == UNANSWERED:
        fault = "the question has the kind none, but a judged passage answers it"
        return fault if question.answerable else None
    if question.answerable or (question.is_of_documents and question.relevant):
        return None
    return (
        f"no judgement has a grade of {question.relevant_from} or more; if no passage answers the"
        f" question, set its kind to {UNANSWERED}"
    )


def _find_refused_texts(
    entries: Sequence[QuestionEntry], is_refused: Callable[[str], bool]
) -> Iterator[str]:
    for entry in entries:
        question = entry.question
        own = (entry.id, *((question.question, question.kind) if question else ()))
        if any(map(is_refused, own)):
            yield f"{entry.place}: the line contains a credential"
        for read in entry.judgements:
            if any(map(is_refused, filter(None, (read.judgement.path, read.judgement.quote)))):
                yield f"{read.place}: the line contains a credential"
