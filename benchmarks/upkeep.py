"""Measure the nightly comparison of a large tenant, and a purge of one of its documents.

    python -m benchmarks.upkeep                          a million entries of one tenant
    python -m benchmarks.upkeep --entries 50000 --name trial

The tenant has documents of 200 passages, made from a seed, and the `deterministic` embedder. The
night is the job `detect_drift` itself in a process of its own; the purge does the work of
`rag-assets purge`. Each figure has time, CPU, peak memory, the servers' CPU, and what was read from
files and over the network; a failed check or an incomplete proof ends the benchmark.
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
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from benchmarks import prose
from benchmarks.measure import CLI, PROJECT, Meter, create_parser, describe_machine, report_result
from benchmarks.servers import Servers, benchmark_servers, start_fork_server, write_tenants_file

PASSAGES = 200
WORK = PROJECT / ".local" / "benchmark-upkeep"
_TENANT = "large"


def main() -> None:
    """Measure and save the result."""
    parser = create_parser(__doc__, name="upkeep", work=WORK)
    parser.add_argument("--entries", type=int, default=1_000_000)
    parser.add_argument("--again", action="store_true", help="reuse the existing tenant")
    parser.add_argument("--night", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--purge", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.night:
        run_measured(run_night)
        return
    if arguments.purge:
        run_measured(lambda: purge_document(arguments.purge))
        return
    before = describe_machine()
    again = arguments.again
    if not again:
        shutil.rmtree(arguments.work / "home", ignore_errors=True)
        write_tenant(arguments.work / "home", arguments.entries)
    with benchmark_servers(arguments.work, fresh=not again) as servers:
        results = measure(servers, arguments.work, again=again)
    figures = {"rounds": 1, **results}
    report_result(arguments.name, "upkeep", before, figures)


def measure(servers: Servers, work: Path, *, again: bool) -> dict[str, Any]:
    """Index a tenant, or use the existing one, and measure a night and a purge."""
    home = work / "home"
    names = sorted(path.name for path in (home / "documents").iterdir())
    environment = {
        "RAG_ASSETS_HOME": str(home),
        "RAG_ASSETS_DATABASE_URL": servers.get_database_url("upkeep")
        if again
        else servers.create_database("upkeep"),
        "RAG_ASSETS_ELASTICSEARCH_URL": servers.elasticsearch_url,
    }
    meter = Meter(servers.pids, environment, work / "commands.log")
    subprocess.run([*CLI, "up", "--no-dagster"], env=meter.environment, check=True)
    meter.helpers.append(start_fork_server(meter.environment))
    phases = {
        "sync": [*CLI, "sync", _TENANT, "--json"],
        "night": [sys.executable, "-m", "benchmarks.upkeep", "--night"],
        "purge": [sys.executable, "-m", "benchmarks.upkeep", "--purge", names[len(names) // 2]],
    }
    if again:
        del phases["sync"]
    results: dict[str, Any] = {"documents": len(names)}
    for phase, command in phases.items():
        cost = meter.run(command)
        results[phase] = {**cost.as_json(), "answer": None, "read_mb": cost.answer.get("read_mb")}
        print(f"{phase:6} {cost.wall:8.2f} s, CPU {cost.cpu:.1f} s, {results[phase]}", flush=True)
        if phase != "purge":
            results["entries"] = servers.count_entries("*-index-*")
    return results


def write_tenant(home: Path, entries: int) -> None:
    """Write documents of many short passages, and the tenants.yaml that names them."""
    rng = random.Random(7)
    folder = home / "documents"
    folder.mkdir(parents=True)
    documents = max(2, entries // PASSAGES)
    for number in range(documents):
        passages = (_build_passage(rng) for _ in range(PASSAGES))
        (folder / f"{number:06}.md").write_text("\n".join(passages))
    tenant = {
        "id": _TENANT,
        "sources": [{"name": "files", "type": "files", "root": str(folder)}],
        "embedder": {"provider": "deterministic", "dimensions": 384},
        "chunker": {"max_tokens": 72, "overlap": 0},
    }
    write_tenants_file(home, [tenant])


def _build_passage(rng: random.Random) -> str:
    """Return a heading and text that becomes one chunk."""
    return f"## {prose.draw_title(rng)}\n\n{prose.draw_sentence(rng)} {prose.draw_sentence(rng)}\n"


def run_measured(work: Callable[[], None]) -> None:
    """Run `work`, and print as JSON its time, CPU and bytes read."""
    process = psutil.Process()
    read, network = process.io_counters().read_chars, _read_received_bytes()
    started, cpu = time.perf_counter(), time.process_time()
    work()
    print(
        json.dumps(
            {
                "inside": time.perf_counter() - started,
                "cpu": time.process_time() - cpu,
                "read_mb": {
                    "files": round((process.io_counters().read_chars - read) / 1e6, 1),
                    "network": round((_read_received_bytes() - network) / 1e6, 1),
                },
            }
        )
    )


def run_night() -> None:
    """Run the nightly comparison of all tenants; end the benchmark if a check fails."""
    from rag_assets.cli.runs import get_repository
    from rag_assets.cli.session import Session

    with Session() as session:
        catalog = session.catalog
        result = (
            get_repository()
            .get_job("detect_drift")
            .execute_in_process(instance=session.instance, run_config={"loggers": {"console": {}}})
        )
        differences = [
            f"{record.id}: {event.kind}"
            for record in catalog.tenants.all()
            for event in catalog.events.latest(record.id, kind="drift_found", limit=1)
        ]
    if not result.success or differences:
        sys.exit(f"the nightly comparison found differences: {differences}")


def purge_document(name: str) -> None:
    """Purge the document of a file; end the benchmark if the proof is not complete."""
    from rag_assets.cli.session import Session, operator
    from rag_assets.pipeline.erasure import purge_documents

    (Path(os.environ["RAG_ASSETS_HOME"]) / "documents" / name).unlink()
    with Session() as session:
        [document] = [
            row.document_id
            for row in session.catalog.documents.all(_TENANT)
            if row.uri.endswith(name)
        ]
        with session.writer(_TENANT, "a purge") as ctx:
            receipt = purge_documents(ctx, [document], by=operator())
    if not receipt.proof["complete"]:
        sys.exit(f"the purge is not complete: {receipt.proof}")


def _read_received_bytes() -> int:
    """Return the bytes received over the loopback interface, which connects servers and clients."""
    return psutil.net_io_counters(pernic=True)["lo"].bytes_recv


if __name__ == "__main__":
    main()
