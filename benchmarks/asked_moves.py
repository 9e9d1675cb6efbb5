"""A subtree that is moved through the service, and questions that are asked right afterwards."""

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
class AskedMove:
    """A move, and the first question of each reader after it.

    Attributes:
        seconds: until `PUT /rag/tree/…` was answered.
        found, hidden: seconds of the question of who reads it now, and of who read it before.
        holds: whether the former found as much as they asked for, and the latter nothing.
    """

    seconds: float
    found: float
    hidden: float
    holds: bool


def push(client: Client, uuids: list[str]) -> None:
    """Push a record of each page."""
    for at in range(0, len(uuids), _BATCH):
        batch = uuids[at : at + _BATCH]
        outcomes = {line.outcome for line in client.write_records([*map(_line, batch)]).lines}
        if outcomes != {"queued"}:
            raise RuntimeError(f"lines were answered {sorted(outcomes)}")


def asked_moves(site: Site, tenant: str, count: int) -> Iterator[AskedMove]:
    """Move the subtree `moved` from the left to the right and back; entries do not follow."""
    readers = {side: site.client(tenant, Person(f"of-{side}", "guest", ())) for side in SIDES}
    admin = site.client(tenant)
    if not _asked(readers["left"])[1] == TOP or _asked(readers["right"])[1]:
        raise RuntimeError("before the first move the subtree is not found on the left alone")
    for before, after in islice(cycle([SIDES, SIDES[::-1]]), count):
        began = time.perf_counter()
        admin.put_page("moved", parent=after)
        seconds = time.perf_counter() - began
        hidden, none = _asked(readers[before])
        found, hits = _asked(readers[after])
        yield AskedMove(seconds, found, hidden, (none, hits) == (0, TOP))


def _asked(reader: Client) -> tuple[float, int]:
    """Seconds of a question, and how much was found."""
    began = time.perf_counter()
    hits = reader.query(Question(query=_WORDS, top_k=TOP)).hits
    return time.perf_counter() - began, len(hits)


def _line(uuid: str) -> dict[str, Any]:
    text = f"{_WORDS}; this is said of {uuid}."
    return {"op": "put", "type": "comment", "id": f"of-{uuid}", "page_uuid": uuid, "text": text}
