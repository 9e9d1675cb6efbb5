"""Measure moving a subtree of a workspace, and whether the move is in force once it is answered.

    python -m benchmarks.workspace_moves                     20,000 records, each a page of its own
    python -m benchmarks.workspace_moves --pages 2000        the same records on fewer pages

The subtree is moved back and forth between two pages with different readers. After each move, the
rows that each reader may see are counted, with the condition that every search uses. A few of its
pages declare their own readers as well. Two other subtrees of the same size stay in place.

In a second workspace the same number of records is indexed, and their subtree is moved through the
service. Each move is immediately followed by a search of those who may read the records now, and of
those who could before; meanwhile the entries are not updated. The embedder is the deterministic
one, which takes no time.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from statistics import median
from typing import Any

from sqlalchemy import func, insert, select

from benchmarks.measure import (
    PROJECT,
    create_parser,
    describe_machine,
    read_tree_cpu,
    report_result,
)
from benchmarks.servers import benchmark_servers
from benchmarks.service_moves import push_records, time_moves
from benchmarks.workspace_questions.site import make_installation, open_site, start_sync
from rag_assets.cli.session import Session
from rag_assets.ingest.sources.model import ListingFacts
from rag_assets.ingest.sources.records import ROOT
from rag_assets.storage.catalog import tables
from rag_assets.storage.catalog.accounts.access import is_readable
from rag_assets.storage.catalog.catalog import Catalog
from rag_assets.storage.catalog.database import TenantRef
from rag_assets.storage.catalog.documents.model import DocumentChange
from rag_assets.storage.catalog.tables import documents
from rag_assets.systems.workspace.page_table import PageLists, TreeTable, build_page_columns
from rag_assets.systems.workspace.tree import Page, plan_tree

WORK = PROJECT / ".local" / "benchmark-moves"
TENANT, ASKED = "wiki", "asked"
PROMISED_SECONDS = 2.0
_BATCH = 1_000
_CHILDREN = 6
_SPEAKING = 50
"""One page of this many declares its readers."""


def main() -> None:
    """Measure and save the result."""
    parser = create_parser(__doc__, name="workspace-moves", work=WORK)
    parser.add_argument("--records", type=int, default=20_000)
    parser.add_argument(
        "--pages", type=int, default=0, help="number of pages; default: one per record"
    )
    parser.add_argument("--moves", type=int, default=12)
    arguments = parser.parse_args()
    pages = arguments.pages or arguments.records
    with benchmark_servers(arguments.work) as servers:
        embedder = {"embedder": {"provider": "deterministic", "dimensions": 384}}
        make_installation(servers, arguments.work / "home", {TENANT: embedder, ASKED: embedder})
        for tenant in (TENANT, ASKED):
            start_sync(tenant).wait()
        with Session() as session:
            tree, asked_tree = (
                Tree(session.catalog, session.catalog.tenants.get(tenant).ref)
                for tenant in (TENANT, ASKED)
            )
            uuids = asked_tree.grow_pages("moved", pages)
            for name in ("moved", "other", "another"):
                tree.grow_subtree(name, pages, arguments.records)
            with open_site(arguments.work / "service.log") as site:
                push_records(site.client(ASKED), uuids)
                start_sync(ASKED).wait()
                before = describe_machine()
                timings = [*time_moves(site, ASKED, arguments.moves)]
            moves = tree.measure_moves(arguments.moves, servers.pids["postgres"])
    seconds = [move["seconds"] for move in moves]
    slowest = max(*seconds, *(move.seconds for move in timings))
    holds = all(move["holds"] for move in moves) and all(move.holds for move in timings)
    figures = {
        "rounds": 1,
        "records": arguments.records,
        "pages": pages,
        "p50": round(median(seconds), 3),
        "max": round(max(seconds), 3),
        "client_cpu": round(median(move["client_cpu"] for move in moves), 3),
        "postgres_cpu": round(median(move["postgres_cpu"] for move in moves), 3),
        "holds": holds,
        "seconds": [round(one, 3) for one in seconds],
        "asked": {
            "records": len(uuids),
            "load_average": before["load_average"],
            **{
                name: {"p50": round(median(taken), 3), "max": round(max(taken), 3)}
                for name, taken in (
                    ("move", [move.seconds for move in timings]),
                    ("found", [move.found_seconds for move in timings]),
                    ("hidden", [move.hidden_seconds for move in timings]),
                )
            },
        },
    }
    report_result(arguments.name, "moved subtrees", before, figures)
    print(
        json.dumps(
            {name: figures[name] for name in ("p50", "max", "client_cpu", "seconds", "asked")}
        )
    )
    sys.exit(1 if slowest > PROMISED_SECONDS or not holds else 0)


class Tree:
    """A workspace's tree with documents on its pages."""

    def __init__(self, catalog: Catalog, ref: TenantRef) -> None:
        self._catalog, self._ref = catalog, ref
        self._records = 0
        for side in ("left", "right"):
            self._put(side, ROOT, inherit=False, readers=(f"of-{side}",))

    def grow_subtree(self, name: str, pages: int, records: int) -> None:
        """Make a subtree of that many pages below `left`, with the records spread over them."""
        uuids = self.grow_pages(name, pages)
        changes = list(_list_documents(uuids, records))
        for at in range(0, records, _BATCH):
            self._catalog.documents.record(self._ref, changes[at : at + _BATCH], lane=0)
        self._catalog.index.refresh_statistics()
        self._records = records

    def grow_pages(self, name: str, pages: int) -> list[str]:
        """Make a subtree of that many pages below `left`; return their ids."""
        self._put(name, "left")
        below = [*_list_pages_below(name, pages)]
        self._put_at_once(name, below)
        return [name, *(page.uuid for page in below)]

    def measure_moves(self, count: int, postgres: int) -> list[dict[str, Any]]:
        """Move the first subtree back and forth; return each move's cost, and whether it held."""
        moves = []
        everything = self._count_readable("of-left")
        for number in range(count):
            side = ("right", "left")[number % 2]
            cpu, postgres_before = time.process_time(), read_tree_cpu(postgres)
            began = time.perf_counter()
            self._put("moved", side)
            seconds = time.perf_counter() - began
            counts = (self._count_readable("of-left"), self._count_readable("of-right"))
            stayed = everything - self._records
            expected = (stayed, self._records) if side == "right" else (everything, 0)
            moves.append(
                {
                    "seconds": seconds,
                    "client_cpu": time.process_time() - cpu,
                    "postgres_cpu": read_tree_cpu(postgres) - postgres_before,
                    "holds": counts == expected,
                }
            )
            print(f"{side}: {seconds:.2f} s", flush=True)
        return moves

    def _put_at_once(self, name: str, below: Sequence[Page]) -> None:
        """Put many pages in one transaction, with the result of one request for each."""
        above = PageLists(self._catalog.database).read_path(self._ref.id, "left")
        plan = plan_tree([Page(uuid=name, parent="left")], [*above, *below])
        tenant = {"tenant": self._ref.id}
        rows = [
            tenant | build_page_columns(page) | {"scope": plan.scopes[page.uuid]} for page in below
        ]
        chains = [
            tenant | {"scope": scope, "ancestor": ancestor}
            for scope, ancestors in plan.ancestors.items()
            for ancestor in ancestors
        ]
        with self._catalog.database.begin_exclusive(self._ref) as connection:
            connection.execute(insert(tables.pages), rows)
            connection.execute(insert(tables.scope_ancestors), chains)

    def _put(self, uuid: str, parent: str, **fields: Any) -> None:
        TreeTable(self._catalog.database).put(self._ref, Page(uuid=uuid, parent=parent, **fields))

    def _count_readable(self, principal: str) -> int:
        """Count the documents that a principal may read now."""
        query = select(func.count()).where(
            documents.c.tenant == self._ref.id, is_readable(documents, [principal])
        )
        with self._catalog.database.begin() as connection:
            return int(connection.scalar(query) or 0)


def _list_pages_below(name: str, pages: int) -> Iterator[Page]:
    rng = random.Random(name)
    uuids = [name]
    for number in range(1, pages):
        uuids.append(f"{name}-{number}")
        readers = (f"guest-{rng.randrange(20)}",) if number % _SPEAKING == 0 else ()
        parent = uuids[(number - 1) // _CHILDREN]
        yield Page(uuid=uuids[-1], parent=parent, readers=readers)


def _list_documents(uuids: Sequence[str], records: int) -> Iterator[DocumentChange]:
    for number in range(records):
        uuid = uuids[number % len(uuids)]
        yield DocumentChange(
            document_id=f"{uuid}-{number}",
            source="pushed",
            source_type="page",
            path=b"",
            uri=f"pushed/page/{uuid}-{number}",
            facts=ListingFacts(1, 1, 1, 1),
            listed_at_ns=1,
            content_sha256=f"{number:064x}",
            modified_at=datetime(2026, 1, 1, tzinfo=UTC),
            page_uuid=uuid,
        )


if __name__ == "__main__":
    main()
