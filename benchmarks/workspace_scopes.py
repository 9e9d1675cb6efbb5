"""Measure searches by callers who can read very many access scopes of a workspace.

    python -m benchmarks.workspace_scopes                    10,000 scopes against 10

Two workspaces hold the same records. In one, each record is on its own page that declares its
readers; in the other, all are on ten such pages. One caller reads all of either, another ten pages
of the first. They ask the same questions through the service, in turns. The embedder is the
deterministic one, which takes no time: with a model, scopes are a smaller part of the cost. The
exit code is 1 if p95 with many scopes is over twice that with ten.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from statistics import quantiles
from typing import Any

from benchmarks.measure import PROJECT, create_parser, describe_machine, report_result
from benchmarks.servers import benchmark_servers
from benchmarks.workspace_questions.site import Site, make_installation, open_site, start_sync
from examples.workspace.data import Person
from rag_assets.cli.session import Session
from rag_assets.client import Client, Question
from rag_assets.systems.workspace.page_table import TreeTable
from rag_assets.systems.workspace.tree import Page

WORK = PROJECT / ".local" / "benchmark-scopes"
PROMISED = 2.0
FEW = 10
MODES = ("hybrid", "knn", "text")
_BATCH = 1_000
_WORDS = 400


def main() -> None:
    """Measure and save the result."""
    parser = create_parser(__doc__, name="workspace-scopes", work=WORK)
    parser.add_argument("--scopes", type=int, default=10_000)
    parser.add_argument("--questions", type=int, default=300, help="questions per caller and mode")
    arguments = parser.parse_args()
    before = describe_machine()
    with benchmark_servers(arguments.work) as servers:
        embedder = {"embedder": {"provider": "deterministic", "dimensions": 384}}
        make_installation(servers, arguments.work / "home", {"many": embedder, "few": embedder})
        for tenant, pages in (("many", arguments.scopes), ("few", FEW)):
            start_sync(tenant).wait()
            put_pages(tenant, pages)
        with open_site(arguments.work / "service.log") as site:
            for tenant, pages in (("many", arguments.scopes), ("few", FEW)):
                push_comments(site.client(tenant), arguments.scopes, pages)
                start_sync(tenant).wait()
            seconds = time_searches(site, arguments.questions)
    modes = {
        mode: {who: compute_percentiles(of) for who, of in by.items()}
        for mode, by in seconds.items()
    }
    ratios = {mode: round(by["many"]["p95"] / by["few"]["p95"], 2) for mode, by in modes.items()}
    figures = {
        "rounds": 1,
        "scopes": arguments.scopes,
        "questions": arguments.questions,
        "milliseconds": modes,
        "p95_ratio": ratios,
    }
    print(json.dumps({"milliseconds": modes, "p95_ratio": ratios}))
    report_result(arguments.name, "scopes of a workspace", before, figures)
    sys.exit(1 if max(ratios.values()) > PROMISED else 0)


def put_pages(tenant: str, count: int) -> None:
    """Put pages that `reader` can read; `visitor` can read the first ten as well."""
    with Session() as session:
        ref = session.catalog.tenants.get(tenant).ref
        table = TreeTable(session.catalog.database)
        for number in range(count):
            readers = ("reader", "visitor") if number < FEW else ("reader",)
            page = Page(uuid=f"p-{number}", inherit=False, readers=readers)
            table.put(ref, page)


def push_comments(client: Client, records: int, pages: int) -> None:
    """Push a comment for each record, evenly over the pages."""
    rng = random.Random(3)
    batch: list[dict[str, Any]] = []
    for number in range(records):
        text = " ".join(f"word{rng.randrange(_WORDS)}" for _ in range(30))
        line = {"op": "put", "type": "comment", "id": f"c-{number}", "text": text}
        batch.append(line | {"page_uuid": f"p-{number % pages}"})
        if len(batch) == _BATCH or number == records - 1:
            outcomes = {one.outcome for one in client.write_records(batch).lines}
            if outcomes != {"queued"}:
                raise RuntimeError(f"lines have unexpected outcomes: {sorted(outcomes)}")
            batch = []


def time_searches(site: Site, count: int) -> dict[str, dict[str, list[float]]]:
    """Return the seconds of questions by mode and caller; the callers take turns."""
    reader, visitor = (Person(name, "guest", ()) for name in ("reader", "visitor"))
    callers = {
        "few": site.client("few", reader),
        "many": site.client("many", reader),
        "few of many": site.client("many", visitor),
    }
    seconds: dict[str, dict[str, list[float]]] = {}
    for mode in MODES:
        seconds_by_caller = seconds.setdefault(mode, {caller: [] for caller in callers})
        for number, question in enumerate(draw_questions(count + 20)):
            for caller, client in callers.items():
                began = time.perf_counter()
                hits = client.query(Question(query=question, mode=mode, top_k=8)).hits
                if number >= 20:
                    seconds_by_caller[caller].append(time.perf_counter() - began)
                expected = {"few": 8, "many": 8}.get(caller, 1)
                if len(hits) < expected and mode != "text":
                    raise RuntimeError(f"{caller}: {len(hits)} hits instead of {expected}")
    return seconds


def draw_questions(count: int) -> Iterator[str]:
    """Yield questions of three words from the records' vocabulary."""
    rng = random.Random(5)
    for _ in range(count):
        yield " ".join(f"word{rng.randrange(_WORDS)}" for _ in range(3))


def compute_percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Return percentiles in milliseconds."""
    cuts = quantiles(seconds, n=100, method="inclusive")
    return {f"p{at}": round(1_000 * cuts[at - 1], 1) for at in (50, 95)}


if __name__ == "__main__":
    main()
