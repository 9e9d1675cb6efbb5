"""Measure recall of files, and answers to agents' tasks, on repositories of several languages.

    python -m benchmarks.code_questions.repositories --checkouts FOLDER [--only NAME]

FOLDER holds a clone for each file of `sets`, under its name, at the commit that the file names.
Everything is indexed with default settings and the local embedder. Recall@10 of a question is the
share of the files that answer it among the files of the first ten passages.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pygit2
import yaml

from benchmarks.code_questions.questions import (
    DEPTH,
    MULTI_HOP,
    SINGLE_HOP,
    AnswerLocation,
    Question,
)
from benchmarks.code_questions.variants import TENANT, VARIANTS, Variant, ask_all, open_indexed
from benchmarks.measure import (
    PROJECT,
    create_parser,
    describe_machine,
    report_result,
)
from benchmarks.servers import benchmark_servers
from rag_assets.cli.session import Session
from rag_assets.search.access import DocumentReader
from rag_assets.search.model import Caller
from rag_assets.systems.code_memory.answers import CodeAnswers

SETS: Final = Path(__file__).with_name("sets")
WORK: Final = PROJECT / ".local" / "benchmark-code-repositories"
_COMPARED: Final = ("code memory", "hybrid, as other profiles", "words alone (BM25)")


def main() -> None:
    """Ask every set, print its figures, and save them."""
    options = _parse_options()
    before = describe_machine()
    sets: dict[str, Any] = {}
    for file in sorted(SETS.glob("*.yaml")):
        if options.only and file.stem not in options.only:
            continue
        entry = yaml.safe_load(file.read_text())
        sets[file.stem] = measure(entry, options.checkouts / file.stem, options.work)
        print(file.stem, sets[file.stem], flush=True)
    if options.only:
        return
    figures = {"depth": DEPTH, "sets": sets}
    report_result("code-repositories", "code-repositories", before, figures)


def measure(entry: Mapping[str, Any], root: Path, work: Path) -> dict[str, Any]:
    """Index a repository and return the figures of each variant, and of the tasks."""
    head, commit = str(pygit2.Repository(str(root)).head.target), entry["application"]["commit"]
    if head != commit:
        sys.exit(f"{root} is at {head}: the questions are about {commit}")
    questions = [parse_file_question(one) for one in entry["questions"]]
    folder = work / root.name
    with (
        benchmark_servers(folder, fresh=True) as servers,
        open_indexed(servers, folder / "home", root.resolve(), fresh=True) as session,
    ):
        ways = {one.name: measure_variant(session, one, questions) for one in _list_compared()}
        tasks = entry.get("agent_tasks", [])
        right = [task["id"] for task in tasks if is_answered(session, task)]
    return {**entry["application"], "ways": ways, "tasks": len(tasks), "right": right}


def parse_file_question(entry: Mapping[str, Any]) -> Question:
    """Return a question whose locations are whole files."""
    answer = tuple(
        tuple(AnswerLocation(at.partition("::")[0].partition("#")[0]) for at in line.split(" | "))
        for line in entry["answer"]
    )
    return Question(entry["id"], entry["kind"], entry["question"], answer, is_tuned=True)


def measure_variant(
    session: Session, variant: Variant, questions: Sequence[Question]
) -> dict[str, float]:
    """Return the mean recall of each kind of question, and the median milliseconds."""
    answers = ask_all(session, variant, questions)
    recalls = {
        kind: statistics.mean(q.recall(answers.passages[q.id]) for q in questions if q.kind == kind)
        for kind in (SINGLE_HOP, MULTI_HOP)
    }
    rounded = {kind: round(recall, 3) for kind, recall in recalls.items()}
    return {**rounded, "milliseconds": answers.milliseconds}


def is_answered(session: Session, task: Mapping[str, Any]) -> bool:
    """Return whether the tool's answer names every expected file."""
    tenant = session.embedders.tenant(session.catalog.tenants.get(TENANT))
    reader = DocumentReader(session.catalog, session.store)
    answers = CodeAnswers(reader, tenant, Caller(), session.settings)
    arguments = dict(task["arguments"])
    if task["tool"] == "who_serves":
        text = answers.who_serves(arguments["route"])
    else:
        text = getattr(answers, task["tool"])(**arguments)
    missing = [path for path in task["answer"] if path not in text]
    if missing:
        print(f"  {task['id']}: {len(missing)} of {len(task['answer'])} missing: {missing[:3]}")
    return not missing


def _list_compared() -> list[Variant]:
    return [one for one in VARIANTS if one.name in _COMPARED]


def _parse_options() -> argparse.Namespace:
    parser = create_parser(__doc__, work=WORK)
    parser.add_argument("--checkouts", type=Path, required=True, help="folder of the clones")
    parser.add_argument("--only", nargs="+", help="sets to ask")
    return parser.parse_args()


if __name__ == "__main__":
    main()
