"""Push many records at once while people edit pages and processes are killed."""

from __future__ import annotations

import random
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from benchmarks.pushing.recount import QueueDepth, count_queue
from benchmarks.pushing.site import Workspace, build_page

PROMISED_SECONDS = 60.0
BATCH = 1_000
_WORDS = ("harbour", "ledger", "valve", "orchard", "signal", "quarry", "lantern", "meadow")
_MARK = re.compile(r"\bmark\w+x\b")
_PAUSE = 0.25
_PATIENCE = 1_800.0
_OVERTAKEN = """
SELECT count(*) FROM rag_catalog.source_records AS record
LEFT JOIN rag_catalog.documents AS document USING (tenant, document_id)
WHERE record.tenant = :tenant AND record.lane = 1 AND record.changed_at < to_timestamp(:at)
AND (document.status IS DISTINCT FROM 'READY' OR document.revision IS DISTINCT FROM record.revision)
"""


@dataclass(frozen=True, slots=True)
class BulkPlan:
    """The records to push, and the times of edits and kills.

    Attributes:
        records: number of records pushed as lines.
        edits: number of edits of existing pages, pushed one by one.
        edit_seconds: time between two edits.
        sample_seconds: time between two counts of the queue.
        kills: what to kill, by the number of the edit before which it is killed; see
            Workspace.kill.
    """

    records: int
    edits: int
    edit_seconds: float
    sample_seconds: float
    kills: Mapping[int, str] = field(default_factory=dict)

    def build_lines(self) -> Iterator[dict[str, Any]]:
        """Yield the records, each with its own mark."""
        rng = random.Random(7)
        for number in range(self.records):
            words = f"{' '.join(rng.choices(_WORDS, k=40))} {build_mark(number)}"
            kind, body = _BODIES[number % len(_BODIES)](words)
            yield {"op": "put", "type": kind, "id": f"bulk-{number}", **body}


@dataclass(frozen=True, slots=True)
class PageEdit:
    """The outcome of an edit of a page.

    Attributes:
        seconds: time from its push until it was found.
        overtaken: number of lines that were pushed before it and not yet indexed.
    """

    seconds: float
    overtaken: int


@dataclass
class BulkTrial:
    """The observations of a trial.

    Attributes:
        queue_depths: samples of the queue.
        killed: what was killed, in order.
        entries: how often the index contains each mark in the end.
        expected_marks: the marks that it should contain, once each.
        waiting_documents: number of documents that wait in the end.
    """

    edits: list[PageEdit] = field(default_factory=list)
    queue_depths: list[QueueDepth] = field(default_factory=list)
    killed: list[str] = field(default_factory=list)
    entries: Counter[str] = field(default_factory=Counter)
    expected_marks: set[str] = field(default_factory=set)
    waiting_documents: int = 0
    pushed_seconds: float = 0.0
    indexed_seconds: float = 0.0


def build_mark(number: int, edition: str = "bulk") -> str:
    """Return the word that only one version of one record contains."""
    return f"mark{edition}{number}x"


def _build_comment(words: str) -> tuple[str, dict[str, Any]]:
    return "comment", {"page_uuid": "edited-0", "text": words}


def _build_row(words: str) -> tuple[str, dict[str, Any]]:
    return "db_row", {"database_uuid": "d", "values": [{"name": "note", "value_text": words}]}


def _build_page(words: str) -> tuple[str, dict[str, Any]]:
    return "page", build_page("A page", words)


_BODIES: tuple[Callable[[str], tuple[str, dict[str, Any]]], ...] = (
    *(_build_comment, _build_row, _build_row, _build_comment, _build_page),
)


def find_faults(trial: BulkTrial) -> list[str]:
    """Return the violated conditions."""
    # Edits listed with the last lines overtake none; if every edit waited for lines, none would.
    overtaking = sum(edit.overtaken > 0 for edit in trial.edits)
    conditions = {
        "an edit was not found within 60 s": max(e.seconds for e in trial.edits)
        <= PROMISED_SECONDS,
        "single edits waited for lines": overtaking >= len(trial.edits) / 4,
        "queue_depth differs from the recount": all(
            count.reported == count.recounted for count in trial.queue_depths
        ),
        "the queue was never sampled while records waited": any(
            count.reported for count in trial.queue_depths
        ),
        "records were lost": trial.expected_marks <= trial.entries.keys(),
        "a replaced version is found": trial.entries.keys() <= trial.expected_marks,
        "records are duplicated": max(trial.entries.values(), default=0) == 1,
        "documents still wait at the end": trial.waiting_documents == 0,
    }
    return [fault for fault, holds in conditions.items() if not holds]


def run_trial(
    workspace: Workspace, plan: BulkPlan, say: Callable[[str], None] = print
) -> BulkTrial:
    """Push everything, edit and kill meanwhile, and wait until all is indexed."""
    trial, ended = BulkTrial(), threading.Event()
    _prepare(workspace, plan)
    began = time.monotonic()
    with ThreadPoolExecutor(plan.edits + len(plan.kills) + 2) as pool:
        sampling = pool.submit(_sample, workspace, trial, plan.sample_seconds, ended)
        pushing = pool.submit(_push, workspace, plan)
        edits = []
        for number in range(plan.edits):
            time.sleep(max(0.0, began + (number + 1) * plan.edit_seconds - time.monotonic()))
            if victim := plan.kills.get(number):
                workspace.kill(victim, pool)
                trial.killed.append(victim)
                say(f"killed: {victim}")
            edits.append(pool.submit(_edit, workspace, number))
        trial.edits = [edit.result() for edit in edits]
        trial.pushed_seconds = pushing.result() - began
        say(f"pushed in {trial.pushed_seconds:.0f} s")
        trial.waiting_documents = _wait_until_indexed(workspace)
        trial.indexed_seconds = time.monotonic() - began
        ended.set()
        sampling.result()
    trial.expected_marks = {build_mark(n) for n in range(plan.records)}
    trial.expected_marks |= {build_mark(n, "after") for n in range(plan.edits)}
    trial.entries = Counter(
        mark for text in workspace.read_entry_texts() for mark in _MARK.findall(text)
    )
    return trial


def _prepare(workspace: Workspace, plan: BulkPlan) -> None:
    """Push the pages that edits will change, and wait until they are indexed."""
    for number in range(plan.edits):
        workspace.put_page(f"edited-{number}")
        words = f"Before. {build_mark(number, 'before')}"
        workspace.put("page", f"edited-{number}", build_page(f"Page {number}", words))
    _wait_until_indexed(workspace)


def _push(workspace: Workspace, plan: BulkPlan) -> float:
    batch: list[dict[str, Any]] = []
    for line in plan.build_lines():
        batch.append(line)
        if len(batch) == BATCH:
            _push_batch(workspace, batch)
            batch = []
    if batch:
        _push_batch(workspace, batch)
    return time.monotonic()


def _push_batch(workspace: Workspace, batch: list[dict[str, Any]]) -> None:
    outcomes = {line.outcome for line in workspace.put_lines(batch)}
    # A batch is sent again if the service was killed after storing it.
    if not outcomes <= {"queued", "unchanged"}:
        raise RuntimeError(f"lines have unexpected outcomes: {sorted(outcomes)}")


def _edit(workspace: Workspace, number: int) -> PageEdit:
    mark = build_mark(number, "after")
    began, pushed_at = time.monotonic(), time.time()
    workspace.put("page", f"edited-{number}", build_page(f"Page {number}", f"After. {mark}"))
    while not workspace.is_found(mark):
        if time.monotonic() - began > _PATIENCE:
            raise RuntimeError(f"edit {number} was not found")
        time.sleep(_PAUSE)
    seconds = time.monotonic() - began
    [row] = workspace.query_rows(_OVERTAKEN, at=pushed_at)
    return PageEdit(round(seconds, 2), int(row[0]))


def _sample(
    workspace: Workspace, trial: BulkTrial, interval_seconds: float, ended: threading.Event
) -> None:
    while not ended.wait(interval_seconds):
        trial.queue_depths.append(count_queue(workspace))
    trial.queue_depths.append(count_queue(workspace))


def _wait_until_indexed(workspace: Workspace) -> int:
    """Wait until the queue is empty; return its depth at the end of the timeout."""
    until = time.monotonic() + _PATIENCE
    while (left := workspace.read_status().queue_depth) and time.monotonic() < until:
        time.sleep(1.0)
    return left


def build_result(plan: BulkPlan, trial: BulkTrial) -> dict[str, Any]:
    """Return the figures of a trial."""
    seconds = sorted(edit.seconds for edit in trial.edits)
    overtaken = sorted(edit.overtaken for edit in trial.edits)
    return {
        "records": plan.records,
        "edits": plan.edits,
        "killed": trial.killed,
        "p50": seconds[len(seconds) // 2],
        "p95": seconds[int(len(seconds) * 0.95)],
        "max": seconds[-1],
        "overtaken_p50": overtaken[len(overtaken) // 2],
        "pushed_seconds": round(trial.pushed_seconds, 1),
        "indexed_seconds": round(trial.indexed_seconds, 1),
        "moments": len(trial.queue_depths),
        "deepest": max(count.reported for count in trial.queue_depths),
        "seconds": [edit.seconds for edit in trial.edits],
        "faults": find_faults(trial),
    }
