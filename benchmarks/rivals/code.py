"""Ask other programs that search source code the questions to a real Laravel application.

    python -m benchmarks.rivals.code --repository PATH [--only NAME...]

PATH is a clone of the application that benchmarks/code_questions/questions.yaml names, at its
commit. Each program works on its own copy; code_programs and code_graphs document how each is used
and why. A program that cannot be used on this machine is reported with the reason, not with a
recall of 0.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.code_questions.__main__ import (
    compute_measures,
    print_answers,
    print_figures,
    require_commit,
)
from benchmarks.code_questions.questions import (
    DEPTH,
    FoundPassage,
    Question,
    read_application,
    read_questions,
)
from benchmarks.code_questions.variants import Answers
from benchmarks.measure import (
    PROJECT,
    create_parser,
    describe_machine,
    report_result,
)
from benchmarks.rivals.code_graphs import CodeGraph, CodeReviewGraph, GitNexus
from benchmarks.rivals.code_programs import CocoIndexCode, Program, ProgramFolders, read_version
from benchmarks.rivals.environments import NotUsableError
from benchmarks.rivals.model_server import model_server

WORK: Final = PROJECT / ".local" / "benchmark-code-rivals"
PROGRAMS: Final[tuple[Program, ...]] = (
    CocoIndexCode(),
    CodeGraph(),
    CodeReviewGraph(),
    GitNexus(),
)


def main() -> None:
    """Ask the programs and save the result."""
    options = _parse_options()
    require_commit(options.repository)
    questions = read_questions(options.repository)
    facts = describe_machine()
    programs: dict[str, Any] = {}
    with model_server() as address:
        for program in PROGRAMS:
            if options.only and program.name not in options.only:
                continue
            programs[program.name] = measure_program(program, options, address, questions)
            print_figures({program.name: programs[program.name]})
    if options.only:
        return
    repository, commit = read_application()
    figures = {
        "rounds": 1,
        "application": {"repository": repository, "commit": commit},
        "depth": DEPTH,
        "programs": programs,
    }
    report_result(options.name, "code-rivals", facts, figures)


def measure_program(
    program: Program, options: argparse.Namespace, address: str, questions: Sequence[Question]
) -> dict[str, Any]:
    """Return the figures of a program, or the reason why there are none."""
    environment = options.work / "environments" / program.name
    result: dict[str, Any] = {}
    root, home = options.work / program.name / "repository", options.work / program.name / "home"
    folders = ProgramFolders(environment, root, home, address)
    try:
        program.install(environment)
        result["version"] = read_version(program, environment)
        shutil.rmtree(options.work / program.name, ignore_errors=True)
        home.mkdir(parents=True)
        clone = ["git", "clone", "--quiet", "--no-hardlinks", str(options.repository), str(root)]
        subprocess.run(clone, check=True)
        try:
            started = time.monotonic()
            program.index(folders)
            result["index_seconds"] = round(time.monotonic() - started, 1)
            answers = _ask_all(program, folders, questions)
        finally:
            program.close(folders)
    except subprocess.CalledProcessError as error:
        return {**result, "failed": f"{error}: {(error.stderr or error.stdout or '')[-500:]}"}
    except NotUsableError as error:
        return {**result, "failed": str(error)}
    if options.show:
        print_answers([question for question in questions if question.is_tuned], answers.passages)
    return {**result, **compute_measures(questions, answers)}


def _ask_all(program: Program, folders: ProgramFolders, questions: Sequence[Question]) -> Answers:
    passages: dict[str, Sequence[FoundPassage]] = {}
    spent = []
    for question in questions:
        started = time.perf_counter()
        passages[question.id] = program.ask(folders, question.question)
        spent.append(1_000 * (time.perf_counter() - started))
    if not any(passages.values()):
        raise NotUsableError("it answered every question with nothing")
    return Answers(passages, round(sorted(spent)[len(spent) // 2], 1))


def _parse_options() -> argparse.Namespace:
    parser = create_parser(__doc__, name="code-rivals", work=WORK)
    parser.add_argument("--repository", type=Path, required=True, help="clone at the commit")
    parser.add_argument("--only", nargs="+", help="programs to ask")
    parser.add_argument(
        "--show", action="store_true", help="print missed locations and found passages"
    )
    options = parser.parse_args()
    options.repository = options.repository.resolve()
    return options


if __name__ == "__main__":
    main()
