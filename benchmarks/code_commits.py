"""Measure a first index of a repository, syncs without changes, and commits of one file.

    python -m benchmarks.code_commits REPOSITORY --file PATH [--rounds N] [--name NAME]

REPOSITORY is a clone; it is cloned again, so it stays unchanged. The embedder is `deterministic`,
which takes almost no time. Each commit appends a comment to PATH. CPU seconds are comparable even
if other programs keep the machine busy; the recorded load shows whether wall times are.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pygit2

from benchmarks.code_memory import TENANT, commit_all
from benchmarks.measure import (
    CLI,
    PROJECT,
    Cost,
    Meter,
    create_parser,
    describe_machine,
    read_load,
    report_result,
)
from benchmarks.servers import benchmark_servers, write_tenants_file

WORK = PROJECT / ".local" / "benchmark-code-commits"
_SYNC = (*CLI, "sync", TENANT, "--json")


def main() -> None:
    """Measure and save the result."""
    parser = create_parser(__doc__)
    parser.add_argument("repository", type=Path)
    parser.add_argument("--file", required=True, help="path of the file to change in commits")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--name", default="trial-code-commits")
    options = parser.parse_args()
    before, home = describe_machine(), WORK / "home"
    root = make_installation(home, options.repository.resolve())
    with benchmark_servers(WORK) as servers:
        environment = servers.build_environment(home, servers.create_database("code_commits"))
        meter = Meter(servers.pids, environment, WORK / "log")
        phases = {"first": [meter.run(_SYNC)]}
        phases["no change"] = [meter.run(_SYNC) for _ in range(options.rounds)]
        phases["one file"] = [
            _commit_and_sync(meter, root, root / options.file) for _ in range(options.rounds)
        ]
    figures = {
        "repository": options.repository.name,
        "documents": phases["first"][0].answer["stages"]["raw_documents"]["documents"],
        "phases": {name: summarize(costs) for name, costs in phases.items()},
    }
    print(json.dumps(figures, indent=1))
    report_result(options.name, "code-commits", before, figures)


def make_installation(home: Path, repository: Path) -> Path:
    """Clone a repository into a new installation with one tenant; return the clone."""
    shutil.rmtree(home, ignore_errors=True)
    root = home / "repository"
    pygit2.clone_repository(str(repository), str(root))
    tenant = {
        "id": TENANT,
        "profile": "code-memory",
        "organization": "benchmark",
        "project": TENANT,
        "embedder": {"provider": "deterministic"},
        "sources": [{"name": "repo", "type": "git", "root": str(root), "ref": "HEAD"}],
    }
    write_tenants_file(home, [tenant])
    # Otherwise each command compiles its modules again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    return root


def summarize(costs: Sequence[Cost]) -> dict[str, Any]:
    """Return the medians of the costs of a phase's syncs."""
    return {
        "rounds": len(costs),
        "wall": _compute_median([cost.wall for cost in costs]),
        "sync": _compute_median([float(cost.answer["seconds"]) for cost in costs]),
        "cpu": _compute_median([cost.cpu for cost in costs]),
        "servers_cpu": _compute_median([sum(cost.servers_cpu.values()) for cost in costs]),
        "peak_mb": _compute_median([cost.peak_mb for cost in costs]),
        "load_average": read_load(),
    }


def _commit_and_sync(meter: Meter, root: Path, file: Path) -> Cost:
    with file.open("a") as opened:
        opened.write("\n// edited\n")
    commit_all(root)
    cost = meter.run(_SYNC)
    if cost.answer["stages"]["raw_documents"]["changed"] != 1:
        sys.exit(f"a commit of {file} did not change one document")
    return cost


def _compute_median(values: Sequence[float]) -> float:
    return round(statistics.median(values), 2)


if __name__ == "__main__":
    main()
