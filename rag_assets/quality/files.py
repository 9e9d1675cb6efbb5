"""Reading and writing of judgement files; a file is read completely or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rag_assets.common.errors import ConfigurationError, WrongJudgements
from rag_assets.quality.beir import QUERIES, find_qrels_file, read_qrels, read_queries
from rag_assets.quality.judgements import UNANSWERED, JudgedQuestion, Judgement
from rag_assets.quality.lines import Entry, Lines, Place, ReadJudgement
from rag_assets.quality.yaml_files import read_yaml

SUFFIXES = (".yaml", ".yml", ".json")


@dataclass(frozen=True, slots=True)
class ReadQuestions:
    """The questions of some files.

    Attributes:
        questions: the questions, in the form in which they are stored.
        places: the first line that names each document path.
    """

    questions: tuple[JudgedQuestion, ...]
    places: Mapping[str, Place]


def read_judgements(
    paths: Sequence[Path],
    present: Iterable[JudgedQuestion] = (),
    *,
    split: str | None = None,
    is_refused: Callable[[str], bool] = lambda _: False,
) -> ReadQuestions:
    """Read the questions of files, in their order.

    Args:
        paths: YAML or JSON files, folders of these, and BEIR folders.
        present: known questions, to which mappings may add judgements.
        split: the part of the set whose qrels are read from BEIR folders.
        is_refused: returns whether a text must not be stored, because it contains a credential.

    Raises:
        ConfigurationError: a path does not hold judgements.
        WrongJudgements: lines are wrong; the error names all of them.
    """
    read = [entries for path in paths for entries in _read(path, split)]
    wrong = [line for _, lines in read for line in lines.described]
    entries = [entry for found, _ in read for entry in found]
    known = {question.id: question for question in present}
    questions, faults = _combine_entries(entries, known)
    refused = _find_refused_texts(entries, is_refused)
    if wrong := [*wrong, *faults, *refused]:
        raise WrongJudgements(wrong)
    places: dict[str, Place] = {}
    for judged in (one for entry in entries for one in entry.judgements):
        places.setdefault(judged.judgement.path, judged.place)
    return ReadQuestions(tuple(questions), places)


def _read(path: Path, split: str | None) -> Iterator[tuple[list[Entry], Lines]]:
    if (path / QUERIES).is_file():
        yield from _read_beir(path, split)
        return
    files = [path]
    if path.is_dir():
        files = [one for one in sorted(path.iterdir()) if one.suffix in SUFFIXES]
        if not files:
            raise ConfigurationError(
                f"{path.name}: the folder has no judgements",
                hint=f"add {QUERIES} and qrels, or files that end in {SUFFIXES[0]}",
            )
    for file in files:
        lines = Lines(file.name)
        yield read_yaml(file, lines), lines


def _read_beir(folder: Path, split: str | None) -> Iterator[tuple[list[Entry], Lines]]:
    qrels = find_qrels_file(folder, split)
    lines = Lines(QUERIES)
    queries = read_queries(folder / QUERIES, lines)
    yield [], lines
    lines = Lines(qrels.name)
    yield read_qrels(qrels, queries, lines), lines


def _combine_entries(
    entries: Sequence[Entry], present: Mapping[str, JudgedQuestion]
) -> tuple[list[JudgedQuestion], list[str]]:
    """Return the questions with all their judgements, and faults that concern a whole question."""
    faults: list[str] = []
    first: dict[str, Entry] = {}
    for entry in entries:
        if entry.question is None:
            continue
        if entry.id in first:
            faults.append(f"{entry.place}: the id is already used in {first[entry.id].place}")
        else:
            first[entry.id] = entry
    found = {id_: entry.question for id_, entry in first.items() if entry.question is not None}
    where = {id_: entry.place for id_, entry in first.items()}
    # Put a question's own judgements first, in whatever order the files are read.
    for entry in sorted(entries, key=lambda entry: entry.question is None):
        question = found.get(entry.id) or present.get(entry.id)
        if question is None:
            faults.append(f"{entry.place}: no question has this id")
            continue
        where.setdefault(entry.id, entry.place)
        found[entry.id] = replace(
            question,
            relevant=_merge_judgements(question.relevant, entry.judgements),
            pool=question.pool | entry.pool,
        )
        faults += _find_duplicates(entry.judgements)
    partly = {entry.id for entry in entries if not entry.is_whole}
    faults += [
        f"{where[id_]}: {fault}"
        for id_, one in found.items()
        if id_ not in partly and (fault := _find_question_fault(one))
    ]
    return list(found.values()), faults


def _merge_judgements(
    present: Sequence[Judgement], added: Sequence[ReadJudgement]
) -> tuple[Judgement, ...]:
    by_passage = {(one.path, one.quote): one for one in present}
    new = (read.judgement for read in added)
    return tuple((by_passage | {(one.path, one.quote): one for one in new}).values())


def _find_duplicates(judgements: Sequence[ReadJudgement]) -> Iterator[str]:
    seen: dict[tuple[str, str | None], Place] = {}
    for read in judgements:
        key = (read.judgement.path, read.judgement.quote)
        if key in seen:
            yield f"{read.place}: this passage is already judged in line {seen[key].line}"
        seen.setdefault(key, read.place)


def _find_question_fault(question: JudgedQuestion) -> str | None:
    if question.kind == UNANSWERED:
        answered = "the question has the kind none, but a judged passage answers it"
        return answered if question.answerable else None
    if question.answerable or (question.is_of_documents and question.relevant):
        return None
    return (
        f"no judgement has a grade of {question.relevant_from} or more; if no passage answers the"
        f" question, set its kind to {UNANSWERED}"
    )


def _find_refused_texts(
    entries: Sequence[Entry], is_refused: Callable[[str], bool]
) -> Iterator[str]:
    for entry in entries:
        asked = entry.question
        own = (entry.id, *((asked.question, asked.kind) if asked else ()))
        if any(map(is_refused, own)):
            yield f"{entry.place}: the line contains a credential"
        for read in entry.judgements:
            if any(map(is_refused, filter(None, (read.judgement.path, read.judgement.quote)))):
                yield f"{read.place}: the line contains a credential"
