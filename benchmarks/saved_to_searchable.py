"""Measure how soon a saved file is searchable with the daemon: alone, during an import, in a burst.

    python -m benchmarks.saved_to_searchable                        20 edits, one after the other
    python -m benchmarks.saved_to_searchable --import-files 6000    while another tenant imports
    python -m benchmarks.saved_to_searchable --burst 150            150 tenants' edits in a minute

An edit replaces a small file as an editor does, by renaming. It counts as searchable once a search
finds its text. In a burst, so many searches would occupy the cores: there an edit counts once the
catalog reports its entries as returned, and a search must confirm it afterwards.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from sqlalchemy import select

from benchmarks import prose
from benchmarks.measure import (
    CLI,
    PROJECT,
    create_parser,
    describe_machine,
    read_tree_cpu,
    report_result,
)
from benchmarks.servers import benchmark_servers, write_tenants_file

WORK = PROJECT / ".local" / "benchmark-saved"
FILES = 20
_TIMEOUT_SECONDS = 600


def main() -> None:
    """Measure and save the result."""
    parser = create_parser(__doc__, name="saved-to-searchable", work=WORK)
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--import-files", type=int, default=0)
    parser.add_argument("--burst", type=int, default=0, help="number of tenants to edit, each once")
    parser.add_argument("--seconds", type=float, default=60, help="duration of a burst's edits")
    arguments = parser.parse_args()
    before = describe_machine()
    home = arguments.work / "home"
    shutil.rmtree(home, ignore_errors=True)
    write_tenants(home, max(1, arguments.burst), arguments.import_files)
    with benchmark_servers(arguments.work) as servers:
        servers.use_home(home, "saved")
        with run_stack() as pids:
            meter = {**servers.pids, **pids}
            if arguments.burst:
                results = run_burst(home, arguments.burst, arguments.seconds, meter)
            else:
                results = run_trials(home, arguments.trials, arguments.import_files, meter)
    figures = {"files": FILES, **results}
    report_result(arguments.name, "saved to searchable", before, figures)


def write_tenants(home: Path, tenants: int, import_files: int) -> None:
    """Write folders of small files, and tenants.yaml without the folder that is imported later."""
    rng = random.Random(7)
    for number in range(tenants):
        folder = home / "sources" / f"{number:04}"
        folder.mkdir(parents=True)
        for file in range(FILES):
            (folder / f"{file}.md").write_text(prose.draw_document(rng, 2))
    for number in range(import_files):
        folder = home / "sources" / "imported" / f"{number // 200:04}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number}.md").write_text(prose.draw_document(rng, 5))
    list_tenants(home, [f"{number:04}" for number in range(tenants)])


def list_tenants(home: Path, names: Sequence[str]) -> None:
    """Write tenants.yaml: one tenant for each folder."""
    entries = [
        {
            "id": f"team-{name}",
            "sources": [{"name": "files", "type": "files", "root": str(home / "sources" / name)}],
            "embedder": {"provider": "deterministic", "dimensions": 384},
        }
        for name in names
    ]
    write_tenants_file(home, entries)


@contextmanager
def run_stack() -> Iterator[Mapping[str, int]]:
    """Sync all tenants and start all processes; yield their pids by name."""
    from rag_assets.common.settings import Settings
    from rag_assets.runtime.stack import LocalStack

    for command in (("up", "--no-dagster"), ("sync", "--all"), ("up",)):
        subprocess.run([*CLI, *command], check=True, stdout=subprocess.DEVNULL)
    stack = LocalStack(Settings.from_environment())
    processes = {
        "fork server": stack.fork_server.process,
        "watcher": stack.watcher.process,
        "webserver": stack.dagster.webserver,
        "daemon": stack.dagster.daemon,
    }
    records = {name: process.find() for name, process in processes.items()}
    try:
        yield {name: record.pid for name, record in records.items() if record is not None}
    finally:
        subprocess.run([*CLI, "down"], check=True, stdout=subprocess.DEVNULL)


class Probe:
    """Reads the state of the index and of runs, as a searcher and an operator would."""

    def __init__(self) -> None:
        from rag_assets.cli.session import Session
        from rag_assets.search import Retriever

        self._session = Session()
        self._catalog = self._session.catalog
        self._retriever = Retriever(self._catalog, self._session.store, self._session.embedders)

    def is_found(self, tenant_id: str, mark: str) -> bool:
        """Return whether a search finds the text."""
        from rag_assets.search.model import SearchRequest

        hits = self._retriever.search(tenant_id, SearchRequest(query=mark, mode="text")).hits
        return any(mark in hit.text for hit in hits)

    def count_ready(self, tenant_id: str) -> int:
        """Count the searchable documents of a tenant."""
        return self._catalog.documents.count_by_status(tenant_id).get("READY", 0)

    def is_idle(self) -> bool:
        """Return whether no run is queued or in progress."""
        return not self._session.own_runs.list_busy_partitions(self._session.instance)

    def read_published_at(self, tenant_id: str, uri: str) -> float:
        """Return when a document's current version was published, in seconds since the epoch."""
        from rag_assets.storage.catalog.tables import document_index, documents

        query = (
            select(document_index.c.indexed_at)
            .join(documents, documents.c.document_id == document_index.c.document_id)
            .where(document_index.c.tenant == tenant_id, documents.c.uri == uri)
            .where(documents.c.tenant == tenant_id)
        )
        with self._catalog.database.begin() as connection:
            indexed_at: datetime | None = connection.scalar(query)
        return indexed_at.timestamp() if indexed_at is not None else 0.0

    def count_runs(self, since: float) -> int:
        """Count the runs that were created since a time."""
        import dagster as dg

        after = dg.RunsFilter(created_after=datetime.fromtimestamp(since, UTC))
        return int(self._session.instance.get_runs_count(after))


def run_trials(
    home: Path, count: int, import_files: int, meter: Mapping[str, int]
) -> dict[str, Any]:
    """Save files one after another, and wait until each is found."""
    probe, rng = Probe(), random.Random(11)
    wait_for(probe.is_idle)
    if import_files:
        list_tenants(home, ["0000", "imported"])
        wait_for(lambda: probe.count_ready("team-imported") > 0)
    began, cpu = time.time(), read_cpu(meter)
    seconds: list[float] = []
    while len(seconds) < count:
        if import_files and probe.count_ready("team-imported") >= import_files:
            break
        time.sleep(rng.uniform(1, 4) if import_files else rng.uniform(3, 8))
        mark = save_edit(home, 0, len(seconds))
        saved = time.monotonic()
        wait_for(lambda mark=mark: probe.is_found("team-0000", mark), pause=0.1)
        seconds.append(time.monotonic() - saved)
        print(f"{seconds[-1]:6.2f} s", flush=True)
    if not import_files:
        time.sleep(5)
    used, runs = compute_cpu_since(cpu, meter), probe.count_runs(began)
    return {
        "trials": len(seconds),
        "import_files": import_files,
        **summarize_latencies(seconds),
        "runs": runs,
        "cpu": used,
    }


def run_burst(home: Path, count: int, spread: float, meter: Mapping[str, int]) -> dict[str, Any]:
    """Save one file of each tenant at even intervals, and wait until all are published."""
    probe = Probe()
    time.sleep(10)
    wait_for(probe.is_idle)
    order = list(range(count))
    random.Random(13).shuffle(order)
    began, cpu = time.time(), read_cpu(meter)
    marks: dict[int, tuple[str, float]] = {}
    for position, number in enumerate(order):
        time.sleep(max(0.0, began + position * spread / count - time.time()))
        mark = save_edit(home, number, position)
        marks[number] = (mark, time.time())
    published: dict[int, float] = {}

    def all_published() -> bool:
        for number, (_, saved) in marks.items():
            if number not in published:
                published_at = probe.read_published_at(f"team-{number:04}", "files/0.md")
                if published_at > saved:
                    published[number] = published_at - saved
        return len(published) == len(marks)

    wait_for(all_published)
    until = time.time()
    used = compute_cpu_since(cpu, meter)
    lost = [n for n, (mark, _) in marks.items() if not probe.is_found(f"team-{n:04}", mark)]
    if lost:
        sys.exit(f"{len(lost)} edits are published but not found: {lost[:5]}")
    return {
        "burst": count,
        "spread_seconds": spread,
        "done_after_seconds": round(until - began, 1),
        **summarize_latencies(list(published.values())),
        "runs": probe.count_runs(began),
        "cpu": used,
        "cpu_per_change": round(sum(used.values()) / count, 3),
    }


def save_edit(home: Path, number: int, trial: int) -> str:
    """Save a file as an editor does; return a word that only this version contains."""
    mark = f"zanzibar{number}x{trial}"
    folder = home / "sources" / f"{number:04}"
    draft = folder / ".0.md.draft"
    draft.write_text(f"# {mark}\n\nThe word is {mark}.\n")
    draft.replace(folder / "0.md")
    return mark


def summarize_latencies(seconds: Sequence[float]) -> dict[str, Any]:
    """Print and return the distribution of latencies."""
    cuts = quantiles(seconds, n=20, method="inclusive") if len(seconds) > 1 else [*seconds] * 19
    percentiles = {"p50": median(seconds), "p95": cuts[18], "max": max(seconds)}
    print({name: round(value, 2) for name, value in percentiles.items()}, flush=True)
    return {
        **{name: round(value, 2) for name, value in percentiles.items()},
        "seconds": [round(value, 2) for value in seconds],
    }


def read_cpu(meter: Mapping[str, int]) -> dict[str, float]:
    """Return the CPU seconds by process, including descendants."""
    return {name: read_tree_cpu(pid) for name, pid in meter.items()}


def compute_cpu_since(before: Mapping[str, float], meter: Mapping[str, int]) -> dict[str, float]:
    """Return the CPU seconds used since `before`."""
    return {name: round(now - before[name], 2) for name, now in read_cpu(meter).items()}


def wait_for(condition: Any, pause: float = 0.3) -> None:
    """Wait until a condition holds; exit after the timeout."""
    deadline = time.monotonic() + _TIMEOUT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            sys.exit(f"the condition did not hold within {_TIMEOUT_SECONDS} seconds")
        time.sleep(pause)


if __name__ == "__main__":
    main()
