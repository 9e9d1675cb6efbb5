"""Measure recall on questions to a real Laravel application, with each step off in turn.

    python -m benchmarks.code_questions --repository PATH [--keep] [--half tuned] [--show]

PATH is a clone of the application that questions.yaml names, at its commit. Recall@10 of a question
is the share of its answering locations that are among the first ten passages.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pygit2

from benchmarks.code_questions.ours import VARIANTS, Answers, asked, indexed
from benchmarks.code_questions.questions import (
    DEPTH,
    MULTI_HOP,
    SINGLE_HOP,
    Found,
    Question,
    application,
    questions,
)
from benchmarks.measure import PROJECT, load, machine, save
from benchmarks.servers import benchmark_servers

WORK: Final = PROJECT / ".local" / "benchmark-code-questions"
HALVES: Final = {"tuned": (True,), "untouched": (False,), "all": (True, False)}


def main() -> None:
    """Ask the questions and save the result."""
    options = _options()
    require_commit(options.repository)
    wanted = HALVES[options.half]
    all_questions = questions(options.repository)
    mine = [question for question in all_questions if question.tuned in wanted]
    before = machine()
    with (
        benchmark_servers(options.work, fresh=not options.keep) as servers,
        indexed(
            servers, options.work / "home", options.repository, fresh=not options.keep
        ) as session,
    ):
        chosen = [v for v in VARIANTS if not options.only or v.name in options.only]
        answers = {variant.name: asked(session, variant, mine) for variant in chosen}
    measured = {name: measures(mine, answer) for name, answer in answers.items()}
    report(measured)
    if options.show:
        shown(mine, answers[chosen[0].name].found)
    if options.half != "all" or options.only:
        return
    repository, commit = application()
    result = {
        "benchmark": "code-questions",
        "taken": datetime.now(UTC).strftime("%Y-%m-%d"),
        "rounds": 1,
        "application": {"repository": repository, "commit": commit},
        "depth": DEPTH,
        "variants": measured,
        "machine": before,
        "load_average_after": load(),
    }
    print(save(options.name, result))


def measures(asked_questions: Sequence[Question], answers: Answers) -> dict[str, Any]:
    """Return recall by half and kind of question, and the milliseconds."""
    by_half: dict[str, dict[str, Any]] = {}
    for half, tuned in HALVES.items():
        for kind in (MULTI_HOP, SINGLE_HOP):
            of_kind = [q for q in asked_questions if q.tuned in tuned and q.kind == kind]
            if of_kind:
                by_half.setdefault(half, {})[kind] = recall(of_kind, answers.found)
    return {**by_half, "milliseconds": answers.milliseconds}


def recall(of: Sequence[Question], found: Mapping[str, Sequence[Found]]) -> float:
    """Return the mean recall of questions."""
    return round(statistics.mean(question.recall(found[question.id]) for question in of), 3)


def report(measured: Mapping[str, Any]) -> None:
    """Print the figures, one variant per line."""
    for name, one in measured.items():
        if "failed" in one:
            print(f"{name:40} {one['failed']}")
            continue
        halves = [
            f"{half} " + " ".join(f"{kind} {value:.3f}" for kind, value in one[half].items())
            for half in HALVES
            if half in one
        ]
        print(f"{name:40} {' | '.join(halves)}  {one['milliseconds']} ms")


def shown(of: Sequence[Question], found: Mapping[str, Sequence[Found]]) -> None:
    """Print the missed locations and the passages of each question."""
    for question in of:
        print(f"\n{question.recall(found[question.id]):.2f} {question.id}: {question.question}")
        for missed in question.missed(found[question.id]):
            print(f"   missed {missed}")
        for hit in found[question.id][:DEPTH]:
            right = any(place.is_in(hit) for equal in question.answer for place in equal)
            print(f"   {'+' if right else ' '} {hit.path}:{hit.first}-{hit.last} {hit.symbol}")


def require_commit(root: Path) -> None:
    """Exit unless the checkout is at the commit that the questions are about."""
    repository, commit = application()
    found = str(pygit2.Repository(str(root)).head.target)
    if found != commit:
        sys.exit(f"{root} is at {found}: the questions are about {commit} of {repository}")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repository", type=Path, required=True, help="clone at the commit")
    parser.add_argument(
        "--half", choices=[*HALVES], default="all", help="half of the questions to ask"
    )
    parser.add_argument("--only", nargs="+", help="variants to ask")
    parser.add_argument("--keep", action="store_true", help="use the index of the last run")
    parser.add_argument(
        "--show", action="store_true", help="print missed locations and found passages"
    )
    parser.add_argument("--name", default="code-questions", help="name of the result file")
    parser.add_argument("--work", type=Path, default=WORK, help="folder for servers and data")
    options = parser.parse_args()
    options.repository = options.repository.resolve()
    return options


if __name__ == "__main__":
    main()
