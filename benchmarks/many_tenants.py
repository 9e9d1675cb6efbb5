"""Measure many small tenants: a sync of all, a sensor tick, the nightly job, a change in one.

    python -m benchmarks.many_tenants                    1,000 tenants of 20 files
    python -m benchmarks.many_tenants --tenants 100 --name trial

The cold sync is `rag-assets sync --all`, with as many tenants at a time as there are cores. The
tick is the function of the sensor `source_files` itself, in a process of its own, once connected;
the night is the job `detect_drift`. A change is followed by the daemon: its figure is the time from
writing one file until a search finds its text.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from benchmarks import prose
from benchmarks.measure import (
    CLI,
    PROJECT,
    Meter,
    create_parser,
    describe_machine,
    read_memory,
    report_result,
)
from benchmarks.servers import Servers, benchmark_servers, start_fork_server, write_tenants_file

FILES = 20
WORK = PROJECT / ".local" / "benchmark-tenants"
_PROCESSES = {"webserver": "webserver", "daemon": "daemon", "code server": "grpc"}
_TIMEOUT_SECONDS = 600


def main() -> None:
    """Measure and save the result."""
    parser = create_parser(__doc__, name="many-tenants", work=WORK)
    parser.add_argument("--tenants", type=int, default=1_000)
    parser.add_argument(
        "--changes", type=int, default=3, help="number of edits followed with the daemon"
    )
    parser.add_argument("--tick", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.tick:
        measure_tick()
        return
    before = describe_machine()
    shutil.rmtree(arguments.work / "home", ignore_errors=True)
    with benchmark_servers(arguments.work) as servers:
        results = measure(servers, arguments.work, arguments.tenants, arguments.changes)
    figures = {"rounds": 1, "tenants": arguments.tenants, "files": FILES, **results}
    report_result(arguments.name, "many tenants", before, figures)


def measure(servers: Servers, work: Path, tenants: int, changes: int) -> dict[str, Any]:
    """Run every phase, in one installation."""
    home = work / "home"
    write_tenants(home, tenants)
    environment = servers.build_environment(home, servers.create_database("tenants"))
    meter = Meter(servers.pids, environment, work / "commands.log")
    cli = [*CLI]
    subprocess.run([*cli, "up", "--no-dagster"], env={**os.environ, **environment}, check=True)
    meter.helpers.append(start_fork_server(meter.environment))
    results: dict[str, Any] = {}
    for phase in ("cold", "noop"):
        cost = meter.run([*cli, "sync", "--all", "--json"])
        results[phase] = {**cost.as_json(), "answer": None}
        print_cost(phase, results[phase])
    ticking = [sys.executable, "-m", "benchmarks.many_tenants", "--tick"]
    results["tick"] = meter.run(ticking).as_json()
    print_cost("tick", results["tick"])
    cost = meter.run([sys.executable, "-m", "benchmarks.upkeep", "--night"])
    results["night"] = {**cost.as_json(), "answer": None, "read_mb": cost.answer["read_mb"]}
    print_cost("night", results["night"])
    with run_dagster(cli, {**os.environ, **environment}):
        results["change_seconds"] = [
            measure_change(home, cli, {**os.environ, **environment}, number)
            for number in range(changes)
        ]
        results["memory_mb"] = read_memory_by_process(home)
    print(results["change_seconds"], results["memory_mb"], flush=True)
    return results


def write_tenants(home: Path, tenants: int) -> None:
    """Write folders of small files, and the tenants.yaml that names them."""
    home.mkdir(parents=True)
    rng = random.Random(7)
    entries = []
    for number in range(tenants):
        folder = home / "sources" / f"{number:04}"
        folder.mkdir(parents=True)
        for file in range(FILES):
            text = prose.draw_document(rng, 2)
            (folder / f"{file}.md").write_text(text)
        entries.append(
            {
                "id": f"team-{number:04}",
                "sources": [{"name": "files", "type": "files", "root": str(folder)}],
                "embedder": {"provider": "deterministic", "dimensions": 384},
            }
        )
    write_tenants_file(home, entries)


def measure_tick() -> None:
    """Evaluate the sensor twice; report the second time, with connections open."""
    import dagster as dg

    from rag_assets.cli.session import Session
    from rag_assets.declarations import PLAIN
    from rag_assets.definitions import build_defs, build_resources
    from rag_assets.sensors.source_files import source_files_sensor

    with Session() as session:
        repository = build_defs().get_repository_def()
        names = ("rag_assets_postgres", "rag_assets_runs")
        built = build_resources()
        resources = {name: built[name] for name in names}
        for _ in range(2):
            started, cpu = time.perf_counter(), time.process_time()
            with dg.build_sensor_context(
                instance=session.instance, repository_def=repository, resources=resources
            ) as context:
                result: Any = source_files_sensor.build(PLAIN)(context)
            inside, used = time.perf_counter() - started, time.process_time() - cpu
    due = len(result.run_requests or [])
    print(json.dumps({"inside": inside, "cpu": used, "due": due, "cursor": result.cursor}))


@contextmanager
def run_dagster(cli: list[str], environment: Mapping[str, str]) -> Iterator[None]:
    """Run Dagster's UI and daemon until the block ends."""
    subprocess.run([*cli, "up"], env=environment, check=True, stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        subprocess.run([*cli, "down"], env=environment, check=True, stdout=subprocess.DEVNULL)


def measure_change(
    home: Path, cli: list[str], environment: Mapping[str, str], number: int
) -> float:
    """Write a file, and wait until a search finds it; return the seconds."""
    mark = f"zanzibar{number}"
    (home / "sources" / "0000" / "0.md").write_text(f"# {mark}\n\nThe word is {mark}.\n")
    started = time.monotonic()
    search = [*cli, "search", "team-0000", mark, "--mode", "text", "--json"]
    while time.monotonic() < started + _TIMEOUT_SECONDS:
        queried_at = time.monotonic()
        answer = subprocess.run(
            search, env=environment, check=True, capture_output=True, text=True
        ).stdout
        if mark in answer:
            return round(queried_at - started, 2)
        time.sleep(0.5)
    sys.exit(f"the change was not searchable after {_TIMEOUT_SECONDS} s")


def read_memory_by_process(home: Path) -> dict[str, float]:
    """Return the megabytes (PSS) of each of the installation's Dagster processes."""
    megabytes: dict[str, float] = {}
    for process in psutil.process_iter(["cmdline", "environ"]):
        if (process.info["environ"] or {}).get("RAG_ASSETS_HOME") != str(home):
            continue
        line = " ".join(process.info["cmdline"] or ())
        name = next((name for name, part in _PROCESSES.items() if part in line), "other")
        megabytes[name] = round(megabytes.get(name, 0.0) + read_memory(process.pid) / 1e6, 1)
    return megabytes


def print_cost(phase: str, cost: Mapping[str, Any]) -> None:
    """Print one line with the cost of a phase."""
    print(f"{phase:6} {cost['wall']:8.2f} s, CPU {cost['cpu']:.1f} s, {cost['inside']}", flush=True)


if __name__ == "__main__":
    main()
