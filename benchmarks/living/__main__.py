"""Trial of a living index: ten publications and five rollbacks under searches, edits and deletions.

    python -m benchmarks.living                     about five minutes
    python -m benchmarks.living --steps 3 --name trial

Everything runs as its user runs it: Postgres, Elasticsearch, Dagster with its daemon and the change
watcher after `rag-assets up`; `rag-assets serve`; commands. A separate process asks twenty
questions a second in all modes, first at rest and then during all steps. The exit code is 1 if any
condition of verdict.py fails.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.living.documents import Editor, write_documents
from benchmarks.living.load import read_answers, run_load
from benchmarks.living.moves import STEPS, Mover, Step, build_command_runner
from benchmarks.living.service import is_found, run_service
from benchmarks.living.verdict import (
    MOST_SLOWER,
    Move,
    RangesByBuild,
    compute_latencies,
    find_faults,
    read_places,
)
from benchmarks.measure import PROJECT, create_parser, describe_machine, report_result
from benchmarks.saved_to_searchable import read_cpu, run_stack
from benchmarks.servers import benchmark_servers

WORK = PROJECT / ".local" / "benchmark-living"
TENANT = "living"
STEADY, EDITED, DOOMED = 200, 10, 30
RATE = 20.0
_EXAMPLES = 5
_WARM_SECONDS = 5.0
_SETTLING_SECONDS, _QUIET_SAMPLES, _QUIET_CPU_SECONDS = 40.0, 3, 0.3
_PAUSE_SECONDS = 1.0
_BETWEEN_EDITS = 3.0


def main() -> None:
    """Run the trial and save the result."""
    parser = create_parser(__doc__, name="living", work=WORK)
    parser.add_argument("--steps", type=int, default=len(STEPS), help="number of steps to run")
    parser.add_argument("--rest", type=float, default=40.0, help="seconds of load at rest")
    arguments = parser.parse_args()
    before = describe_machine()
    home = arguments.work / "home"
    shutil.rmtree(home, ignore_errors=True)
    folder = home / "sources" / TENANT
    questions = write_documents(folder, steady=STEADY, edited=EDITED, doomed=DOOMED)
    _configure(home, folder, {})
    with benchmark_servers(arguments.work) as servers:
        servers.use_home(home, "living", RAG_ASSETS_SERVICE_RATE="1000000/minute")
        with run_stack() as pids, run_service(TENANT, home / "service.log") as (url, token):
            _wait_until_idle({**servers.pids, **pids})
            trial = _LivingTrial(arguments.work, folder, url, token, questions)
            results = trial.run(STEPS[: arguments.steps], arguments.rest)
    figures = {
        "rounds": 1,
        "documents": {"steady": STEADY, "edited": EDITED, "doomed": DOOMED},
        "rate": RATE,
        **results,
    }
    report_result(arguments.name, "living index", before, figures)
    sys.exit(1 if results["faults"] else 0)


class _LivingTrial:
    """Runs questions, edits and moves concurrently.

    Args:
        work: folder for answers.
        folder: folder of the tenant's source.
        url, token: address of the service, and a token for it.
        questions: questions that unchanged documents answer.
    """

    def __init__(
        self, work: Path, folder: Path, url: str, token: str, questions: Sequence[str]
    ) -> None:
        self._work, self._folder = work, folder
        self._url, self._token, self._questions = url, token, questions
        self._ended = threading.Event()
        self._editor = Editor(
            folder, edited=EDITED, doomed=DOOMED, finds=partial(is_found, url, token)
        )

    def run(self, steps: Sequence[Step], rest_seconds: float) -> dict[str, Any]:
        """Measure at rest, then run all steps under load; return the figures."""
        with run_load(self._url, self._token, self._questions, self._work / "warm", rate=RATE):
            time.sleep(_WARM_SECONDS)
        with run_load(self._url, self._token, self._questions, self._work / "rest", rate=RATE):
            time.sleep(rest_seconds)
        editing = threading.Thread(target=self._edit_until_ended)
        mover = Mover(TENANT, self._configure_tenant, build_command_runner(os.environ))
        moves = []
        with run_load(self._url, self._token, self._questions, self._work / "moving", rate=RATE):
            editing.start()
            try:
                for step in steps:
                    moves.append(mover.run_step(step))
                    _print_move(moves[-1])
                    time.sleep(_PAUSE_SECONDS)
            finally:
                self._ended.set()
                editing.join()
        return self._summarize(moves)

    def _summarize(self, moves: Sequence[Move]) -> dict[str, Any]:
        rest, answers = (read_answers(self._work / name) for name in ("rest", "moving"))
        editor = self._editor
        faults = find_faults(answers, moves, editor.edits, editor.deletions, _read_places())
        at_rest, moving = compute_latencies(rest), compute_latencies(answers)
        ratio = moving["p95"] / at_rest["p95"]
        if ratio > MOST_SLOWER:
            faults["p95 over three times p95 at rest"] = [f"{ratio:.2f} times"]
        for fault, examples in faults.items():
            print(f"{fault}: {len(examples)}", *examples[:_EXAMPLES], sep="\n  ", flush=True)
        edit_seconds = sorted(
            e.found_at - e.saved_at for e in editor.edits if e.found_at is not None
        )
        return {
            "questions": len(answers),
            "by_mode": Counter(answer.mode for answer in answers),
            "generations": Counter(str(answer.generation) for answer in answers),
            "at_rest_ms": at_rest,
            "moving_ms": moving,
            "p95_ratio": round(ratio, 2),
            "edits": len(editor.edits),
            "edit_seconds": {
                "median": round(edit_seconds[len(edit_seconds) // 2], 2) if edit_seconds else None,
                "max": round(edit_seconds[-1], 2) if edit_seconds else None,
            },
            "deletions": len(editor.deletions),
            "moves": [{**asdict(m), "seconds": round(m.ended - m.began, 2)} for m in moves],
            "faults": {fault: [len(all_), *all_[:_EXAMPLES]] for fault, all_ in faults.items()},
        }

    def _edit_until_ended(self) -> None:
        while not self._ended.is_set():
            self._editor.edit()
            self._ended.wait(_BETWEEN_EDITS)
            if not self._ended.is_set():
                self._editor.delete()
                self._ended.wait(_BETWEEN_EDITS)

    def _configure_tenant(self, fields: Mapping[str, Any]) -> None:
        _configure(Path(os.environ["RAG_ASSETS_HOME"]), self._folder, fields)


def _configure(home: Path, folder: Path, fields: Mapping[str, Any]) -> None:
    """Set fields of the tenant, and keep its other fields."""
    path = home / "tenants.yaml"
    entry: dict[str, Any] = {
        "id": TENANT,
        "sources": [{"name": "files", "type": "files", "root": str(folder)}],
        "embedder": {"provider": "deterministic", "dimensions": 384},
    }
    if path.exists():
        [entry] = json.loads(path.read_text())["tenants"]
    for name, value in fields.items():
        former = entry.get(name)
        # Different steps set the two fields of `index`.
        entry[name] = {**former, **value} if name == "index" and former else value
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps({"tenants": [entry]}))  # JSON is YAML
    draft.replace(path)


def _wait_until_idle(pids: Mapping[str, int]) -> None:
    """Wait until the started processes are idle."""
    deadline, quiet, before = time.monotonic() + _SETTLING_SECONDS, 0, read_cpu(pids)
    while quiet < _QUIET_SAMPLES and time.monotonic() < deadline:
        time.sleep(1.0)
        now = read_cpu(pids)
        busy = sum(now.values()) - sum(before.values()) > _QUIET_CPU_SECONDS
        quiet, before = 0 if busy else quiet + 1, now


def _read_places() -> RangesByBuild:
    from rag_assets.cli.session import Session

    with Session() as session:
        return read_places(session.build_reader_context(TENANT))


def _print_move(move: Move) -> None:
    seconds = move.ended - move.began
    waited = f", after {len(move.waited)} attempts" if move.waited else ""
    print(f"{move.kind:15} {move.generation:3} {seconds:6.2f} s{waited}", flush=True)


if __name__ == "__main__":
    main()
