"""Measure moving a subtree through the service, and searches right after each move."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

from benchmarks.workspace_questions.site import Site
from examples.workspace.data import Person
from rag_assets.client import Client, Question

TOP = 8
SIDES = ("left", "right")
_BATCH = 1_000
_WORDS = "The harbour pilot boards outside the breakwater"


@dataclass(frozen=True, slots=True)
class MoveTiming:
    """The durations of one move and of the first search of each reader after it.

    Attributes:
        seconds: duration of `PUT /rag/tree/…`.
        found_seconds: duration of the search by the reader who gained access.
        hidden_seconds: duration of the search by the reader who lost access.
        holds: whether the first reader got all expected hits and the second none.
    """

    seconds: float
    found_seconds: float
    hidden_seconds: float
    holds: bool


def push_records(client: Client, uuids: list[str]) -> None:
    """Push one record for each page."""
    for at in range(0, len(uuids), _BATCH):
        batch = uuids[at : at + _BATCH]
        outcomes = {line.outcome for line in client.write_records([*map(_build_line, batch)]).lines}
        if outcomes != {"queued"}:
            raise RuntimeError(f"lines have unexpected outcomes: {sorted(outcomes)}")


def time_moves(site: Site, tenant: str, count: int) -> Iterator[MoveTiming]:
    """Move the subtree `moved` between left and right, and time each; entries stay in place."""
    readers = {side: site.client(tenant, Person(f"of-{side}", "guest", ())) for side in SIDES}
    admin = site.client(tenant)
    if not _time_search(readers["left"])[1] == TOP or _time_search(readers["right"])[1]:
        raise RuntimeError(
            "before the first move, the subtree must be found only by the reader of the left page"
        )
    for before, after in islice(cycle([SIDES, SIDES[::-1]]), count):
        began = time.perf_counter()
        admin.put_page("moved", parent=after)
        seconds = time.perf_counter() - began
        hidden_seconds, hidden_hits = _time_search(readers[before])
        found_seconds, found_hits = _time_search(readers[after])
        yield MoveTiming(
            seconds, found_seconds, hidden_seconds, (hidden_hits, found_hits) == (0, TOP)
        )


def _time_search(reader: Client) -> tuple[float, int]:
    """Return the seconds and the number of hits of a search."""
    began = time.perf_counter()
    hits = reader.query(Question(query=_WORDS, top_k=TOP)).hits
    return time.perf_counter() - began, len(hits)


def _build_line(uuid: str) -> dict[str, Any]:
    text = f"{_WORDS}; this is said of {uuid}."
    return {"op": "put", "type": "comment", "id": f"of-{uuid}", "page_uuid": uuid, "text": text}
