"""Save a page or a file every second, and follow which states are listed and found."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from benchmarks.pushing.long_put import LongPuts, build_mark
from benchmarks.pushing.site import Workspace, build_page

PROMISED_SECONDS = 60.0
PAGE = "changing"
_STATE = re.compile(r"\bstate(\d+)x\b")
_LISTED = """
SELECT content_sha256 FROM rag_catalog.documents WHERE tenant = :tenant AND document_id = :id
"""
_PUSHED = {
    "page": _LISTED.replace("documents", "source_records"),
    "file": _LISTED.replace("documents", "uploads"),
}
"""Queries for the pushed content, by record type."""
_PAUSE = 0.1
_NEVER = float("inf")


@dataclass
class PageTrial:
    """When each state of the page was first pushed, listed and found, in seconds.

    Attributes:
        listed_at, found_at: times by state, in the order in which they were seen.
        version_counts: number of versions that each search found.
        ages: for each search, how long a newer state than the found one had been pushed.
        entries_by_run: number of entries written, by run.
        killed: what was killed meanwhile, in order.
        stored: whether the stored content in the end is what was pushed last.
        others: other violated conditions.
    """

    pushed_at: dict[int, float] = field(default_factory=dict)
    listed_at: dict[int, float] = field(default_factory=dict)
    found_at: dict[int, float] = field(default_factory=dict)
    version_counts: list[int] = field(default_factory=list)
    ages: list[float] = field(default_factory=list)
    entries_by_run: Mapping[str, int] = field(default_factory=dict)
    killed: list[str] = field(default_factory=list)
    stored: bool = False
    others: list[str] = field(default_factory=list)

    @property
    def latencies(self) -> list[float]:
        """Return the seconds from listing to first finding of each listed state."""
        return [self.found_at.get(state, _NEVER) - at for state, at in self.listed_at.items()]


def find_faults(trial: PageTrial) -> list[str]:
    """Return the violated conditions."""
    last = max(trial.pushed_at)
    order, runs = [*trial.found_at], [n for n in trial.entries_by_run.values() if n]
    # A killed run may have listed or written a state without recording it, and nothing is
    # observed while the service is down.
    undisturbed = {
        "a listed state was not found within 60 s": max(trial.latencies) <= PROMISED_SECONDS,
        "a listed state was not written exactly once": len(runs) == len(trial.listed_at),
        "an unlisted state was found": trial.found_at.keys() <= trial.listed_at.keys(),
    }
    conditions = {
        "a found state was over 60 s old": max(trial.ages) <= PROMISED_SECONDS,
        "an earlier state came back": all(a < b for a, b in pairwise(order)),
        "a search found no state": 0 not in trial.version_counts,
        "two versions were found at once": max(trial.version_counts) <= 1,
        "the last state was not found": order[-1:] == [last],
        "a run wrote the page twice": max(runs, default=1) == 1,
        "the stored content is not the last push": trial.stored,
        **({} if trial.killed else undisturbed),
    }
    return [*(fault for fault, holds in conditions.items() if not holds), *trial.others]


def run_trial(
    workspace: Workspace,
    seconds: float,
    *,
    kind: str = "page",
    kills: Mapping[int, str] = MappingProxyType({}),
) -> PageTrial:
    """Save the page every second, and follow it until its last state is found.

    Args:
        workspace: contains the page.
        seconds: duration of the saving.
        kind: "page", or "file", whose content is put.
        kills: what to kill, by the second; see Workspace.kill. The service is killed in the middle
            of a put of another file.
    """
    trial, ended = PageTrial(), threading.Event()
    began, shas = time.time(), dict[str, int]()
    workspace.put_page(PAGE)
    if kind == "file":
        workspace.put("file", PAGE, {"page_uuid": PAGE, "name": "counter.md"})
    long_puts = LongPuts(workspace)
    if kills:
        long_puts.prepare()
    _push(workspace, trial, shas, 0, kind)
    _wait_until_found(workspace, "state0x")
    watcher = threading.Thread(target=_watch, args=(workspace, trial, shas, ended, kind))
    watcher.start()
    try:
        with ThreadPoolExecutor() as pool:
            for number in range(1, round(seconds) + 1):
                time.sleep(max(0.0, trial.pushed_at[0] + number - time.monotonic()))
                if victim := kills.get(number):
                    _kill(workspace, victim, long_puts, pool)
                    trial.killed.append(victim)
                _push(workspace, trial, shas, number, kind)
        _wait_until_found(workspace, f"state{max(trial.pushed_at)}x")
        time.sleep(1.0)
    finally:
        ended.set()
        watcher.join()
    trial.entries_by_run = {} if kills else workspace.count_written_entries(began)
    trial.stored = shas.get(workspace.read_record_sha256(kind, PAGE) or "") == max(trial.pushed_at)
    if kills:
        _wait_until_found(workspace, build_mark(len(long_puts.stored)))
        trial.others = [*long_puts.find_faults(), *workspace.find_blob_faults()]
    return trial


def _kill(workspace: Workspace, victim: str, long_puts: LongPuts, pool: ThreadPoolExecutor) -> None:
    if victim == "service":
        long_puts.interrupt_put()
    else:
        workspace.kill(victim, pool)


def _push(
    workspace: Workspace, trial: PageTrial, shas: dict[str, int], number: int, kind: str
) -> None:
    words = f"The counter shows state{number}x."
    trial.pushed_at[number] = time.monotonic()
    if kind == "file":
        workspace.put_content(PAGE, f"# A file that changes\n\n{words}\n".encode())
    else:
        workspace.put("page", PAGE, build_page("A page that changes", words))
    [row] = workspace.query_rows(_PUSHED[kind], id=workspace.compute_document_id(kind, PAGE))
    shas[row.content_sha256] = number


def _watch(
    workspace: Workspace,
    trial: PageTrial,
    shas: Mapping[str, int],
    ended: threading.Event,
    kind: str,
) -> None:
    """Search continuously, and record which state was listed and found."""
    id_ = workspace.compute_document_id(kind, PAGE)
    while not ended.is_set():
        for row in workspace.query_rows(_LISTED, id=id_):
            state = shas.get(row.content_sha256)
            if state is not None:
                trial.listed_at.setdefault(state, time.monotonic())
        if (texts := workspace.search_texts("counter shows")) is not None:
            _record_states(trial, texts, time.monotonic())
        ended.wait(_PAUSE)


def _record_states(trial: PageTrial, texts: Sequence[str], now: float) -> None:
    states = [int(match[1]) for text in texts if (match := _STATE.search(text))]
    trial.version_counts.append(len(states))
    for state in states:
        trial.found_at.setdefault(state, now)
        newer = trial.pushed_at.get(state + 1, now)
        trial.ages.append(max(0.0, now - newer))


def _wait_until_found(workspace: Workspace, word: str) -> None:
    until = time.monotonic() + 2 * PROMISED_SECONDS
    while not workspace.is_found(word):
        if time.monotonic() > until:
            raise RuntimeError(f"{word} was not found")
        time.sleep(_PAUSE)


def build_result(trial: PageTrial) -> dict[str, Any]:
    """Return the figures of a trial."""
    latencies = sorted(trial.latencies)
    return {
        "pushed": len(trial.pushed_at),
        "listed": len(trial.listed_at),
        "found": len(trial.found_at),
        "runs": len(trial.entries_by_run),
        "killed": trial.killed,
        "questions": len(trial.version_counts),
        "listed_to_found": {
            "p50": round(latencies[len(latencies) // 2], 2),
            "max": round(max(latency for latency in latencies if latency != _NEVER), 2),
        },
        "oldest_found": round(max(trial.ages), 2),
        "faults": find_faults(trial),
    }
