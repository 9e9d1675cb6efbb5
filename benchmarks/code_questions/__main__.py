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
from pathlib import Path
from typing import Any, Final

import pygit2

from benchmarks.code_questions.questions import (
    DEPTH,
    MULTI_HOP,
    SINGLE_HOP,
    FoundPassage,
    Question,
    read_application,
    read_questions,
)
from benchmarks.code_questions.variants import VARIANTS, Answers, ask_all, open_indexed
from benchmarks.measure import PROJECT, create_parser, describe_machine, report_result
from benchmarks.servers import benchmark_servers

WORK: Final = PROJECT / ".local" / "benchmark-code-questions"
HALVES: Final = {"tuned": (True,), "untouched": (False,), "all": (True, False)}


def main() -> None:
    """Ask the questions and save the result."""
    options = _parse_options()
    require_commit(options.repository)
    halves = HALVES[options.half]
    all_questions = read_questions(options.repository)
    chosen = [question for question in all_questions if question.is_tuned in halves]
    before = describe_machine()
    with (
        benchmark_servers(options.work, fresh=not options.keep) as servers,
        open_indexed(
            servers, options.work / "home", options.repository, fresh=not options.keep
        ) as session,
    ):
        variants = [v for v in VARIANTS if not options.only or v.name in options.only]
        answers = {variant.name: ask_all(session, variant, chosen) for variant in variants}
    figures = {name: compute_measures(chosen, answer) for name, answer in answers.items()}
    print_figures(figures)
    if options.show:
        print_answers(chosen, answers[variants[0].name].passages)
    if options.half != "all" or options.only:
        return
    repository, commit = read_application()
    result = {
        "rounds": 1,
        "application": {"repository": repository, "commit": commit},
        "depth": DEPTH,
        "variants": figures,
    }
    report_result(options.name, "code-questions", before, result)


def compute_measures(questions: Sequence[Question], answers: Answers) -> dict[str, Any]:
    """Return recall by half and kind of question, and the milliseconds."""
    by_half: dict[str, dict[str, Any]] = {}
    for half, tuned in HALVES.items():
        for kind in (MULTI_HOP, SINGLE_HOP):
            of_kind = [q for q in questions if q.is_tuned in tuned and q.kind == kind]
            if of_kind:
                by_half.setdefault(half, {})[kind] = compute_mean_recall(of_kind, answers.passages)
    return {**by_half, "milliseconds": answers.milliseconds}


def compute_mean_recall(
    questions: Sequence[Question], passages: Mapping[str, Sequence[FoundPassage]]
) -> float:
    """Return the mean recall of questions."""
    return round(
        statistics.mean(question.recall(passages[question.id]) for question in questions), 3
    )


def print_figures(figures: Mapping[str, Any]) -> None:
    """Print the figures, one variant per line."""
    for name, by_half in figures.items():
        if "failed" in by_half:
            print(f"{name:40} {by_half['failed']}")
            continue
        halves = [
            f"{half} " + " ".join(f"{kind} {value:.3f}" for kind, value in by_half[half].items())
            for half in HALVES
            if half in by_half
        ]
        print(f"{name:40} {' | '.join(halves)}  {by_half['milliseconds']} ms")


def print_answers(
    questions: Sequence[Question], passages: Mapping[str, Sequence[FoundPassage]]
) -> None:
    """Print the missed locations and the passages of each question."""
    for question in questions:
        print(f"\n{question.recall(passages[question.id]):.2f} {question.id}: {question.question}")
        for missed in question.list_missed(passages[question.id]):
            print(f"   missed {missed}")
        for hit in passages[question.id][:DEPTH]:
            right = any(location.is_in(hit) for equal in question.answer for location in equal)
            print(f"   {'+' if right else ' '} {hit.path}:{hit.first}-{hit.last} {hit.symbol}")


def require_commit(root: Path) -> None:
    """Exit unless the checkout is at the commit that the questions are about."""
    repository, commit = read_application()
    head = str(pygit2.Repository(str(root)).head.target)
    if head != commit:
        sys.exit(f"{root} is at {head}: the questions are about {commit} of {repository}")


def _parse_options() -> argparse.Namespace:
    parser = create_parser(__doc__, name="code-questions", work=WORK)
    parser.add_argument("--repository", type=Path, required=True, help="clone at the commit")
    parser.add_argument(
        "--half", choices=[*HALVES], default="all", help="half of the questions to ask"
    )
    parser.add_argument("--only", nargs="+", help="variants to ask")
    parser.add_argument("--keep", action="store_true", help="use the index of the last run")
    parser.add_argument(
        "--show", action="store_true", help="print missed locations and found passages"
    )
    options = parser.parse_args()
    options.repository = options.repository.resolve()
    return options


if __name__ == "__main__":
    main()
