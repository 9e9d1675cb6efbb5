"""Measure syncs in every situation, and bare Elasticsearch writing the same entries.

    python -m benchmarks.chain                        2,000 files, three rounds
    python -m benchmarks.chain --files 20000 --rounds 1 --name chain-20000
    python -m benchmarks.chain --rounds 1 --only edit --ways user --name trial    while optimising

Each round runs every phase twice, in separate installations on the same servers: `user` runs
`rag-assets sync` in a fork, as after `rag-assets up`, and measures its whole wall time; `inside`
runs in its own process, with all modules imported beforehand.
A further installation is killed half-way through its first sync; the next sync finishes it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import corpus
from benchmarks.measure import (
    CLI,
    PROJECT,
    WORK,
    Cost,
    Meter,
    create_parser,
    describe_machine,
    report_result,
)
from benchmarks.servers import Servers, benchmark_servers, start_fork_server, stop_fork_server
from rag_assets.forkserver.client import DISABLED

TENANT = "bench"
PHASES = ("cold", "noop", "edit", "rename", "delete", "loss", "kill", "bare")
WAYS = ("user", "inside")

_WARM_UP = "warm-up"
_TENANTS = """\
tenants:
  - id: {warm_up}
    sources: [{{name: files, type: files, root: {warm_up_folder}}}]
    embedder: &embedder {{provider: deterministic, dimensions: 384}}
  - id: {tenant}
    sources: [{{name: files, type: files, root: {folder}}}]
    chunker: {{chunker: heading, max_tokens: {max_tokens}, overlap: {overlap}}}
    embedder: *embedder
"""


@dataclass(frozen=True, slots=True)
class BenchmarkInstallation:
    """A home folder, a database and an index prefix, in which one file was synced.

    That sync does the one-time work, such as creating Dagster's tables, so no figure contains it.
    """

    name: str
    servers: Servers
    meter: Meter
    environment: Mapping[str, str]
    modules: Path

    @classmethod
    def new(
        cls, name: str, servers: Servers, work: Path, folder: Path, *, forks: bool
    ) -> BenchmarkInstallation:
        """Create an installation with a tenant whose documents are in the folder.

        Args:
            name: names the home, the database and the indexes.
            work: folder for everything that the benchmark makes.
            folder: contains the documents.
            forks: whether commands are forks of the fork server, as after `rag-assets up`.
        """
        home, warm_up = work / "homes" / name, work / "warm-up"
        home.mkdir(parents=True)
        corpus.write_corpus(warm_up, 1)
        text = _TENANTS.format(
            tenant=TENANT,
            folder=folder,
            warm_up=_WARM_UP,
            warm_up_folder=warm_up,
            max_tokens=corpus.MAX_TOKENS,
            overlap=corpus.OVERLAP,
        )
        (home / "tenants.yaml").write_text(text)
        environment = {
            "RAG_ASSETS_HOME": str(home),
            "RAG_ASSETS_INDEX_PREFIX": name,
            "RAG_ASSETS_DATABASE_URL": servers.create_database(name),
            "RAG_ASSETS_ELASTICSEARCH_URL": servers.elasticsearch_url,
            **({} if forks else {DISABLED: "0"}),
        }
        meter = Meter(servers.pids, environment, work / "commands.log")
        installation = cls(name, servers, meter, environment, work / "modules.txt")
        installation.run_unmeasured("up", "--no-dagster")
        if forks:
            meter.helpers.append(start_fork_server(meter.environment))
        installation.sync(inside=not forks, tenant=_WARM_UP)
        return installation

    def sync(self, *options: str, inside: bool = False, **named: Any) -> Cost:
        """Sync the tenant as a user would, or with all modules imported beforehand."""
        tenant = named.pop("tenant", TENANT)
        way = ["benchmarks.warm", str(self.modules)] if inside else ["rag_assets.cli"]
        command = [sys.executable, "-m", *way, "sync", tenant, *options, "--json"]
        return self.meter.run(command, **named)

    def run_unmeasured(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command without measuring it."""
        return subprocess.run(
            [*CLI, *arguments],
            env={**os.environ, **self.environment},
            cwd=PROJECT,
            capture_output=True,
            text=True,
            check=False,
        )

    def count_entries(self) -> int:
        """Return the number of entries in its indexes, including the warm-up tenant's."""
        return self.servers.count_entries(f"{self.name}-index-*")

    def remove(self) -> None:
        """Delete the indexes, and stop the fork server."""
        self.servers.drop_indexes(f"{self.name}-*")
        stop_fork_server(self.meter.environment)


class Benchmark:
    """One run of the benchmark, with costs by phase and way.

    Args:
        work: folder for everything that the benchmark makes.
        files: number of documents.
        only: the phases to run; a first sync always comes first.
        ways: "user", "inside" or both.
    """

    def __init__(
        self, servers: Servers, work: Path, files: int, only: Sequence[str], ways: Sequence[str]
    ) -> None:
        self._servers, self._work, self._only, self._ways = servers, work, only, ways
        self._folder = work / "corpus"
        self._entries = work / "entries.jsonl"
        self._paths = corpus.write_corpus(self._folder, files)
        self.costs: dict[str, list[dict[str, Any]]] = defaultdict(list)
        self.entry_count = 0
        self._first_sync = 0.0
        self.is_loss_noticed: bool | None = None

    def run_round(self, number: int) -> None:
        """Run every phase in each way."""
        for way in self._ways:
            self._run_phases(f"{way}{number}", number, inside=way == "inside")
        if "bare" in self._only:
            self._run_bare(number)
        if "kill" in self._only:
            self._run_kill(f"kill{number}")

    def _run_phases(self, name: str, number: int, *, inside: bool) -> None:
        corpus.restore_files(self._folder, self._paths)
        install = BenchmarkInstallation.new(
            name, self._servers, self._work, self._folder, forks=not inside
        )
        run_phase = _PhaseRunner(self.costs, install, inside=inside)
        cold = run_phase("cold", {"raw_documents.added": len(self._paths)})
        self._first_sync = cold.inside or cold.wall
        self.entry_count = cold.answer["stages"]["search_index"]["upserted"]
        if "bare" in self._only and not self._entries.exists():
            subprocess.run(
                [sys.executable, "-m", "benchmarks.bare", "dump", str(self._entries), TENANT],
                env={**os.environ, **install.environment},
                cwd=PROJECT,
                check=True,
            )
        for phase, change, expected in self._list_changes(number):
            if phase in self._only:
                expected_count = len(change())
                run_phase(phase, dict.fromkeys(expected, expected_count))
        if "loss" in self._only:
            self._run_loss(install, run_phase)
        install.remove()

    def _list_changes(
        self, number: int
    ) -> list[tuple[str, Callable[[], Sequence[Path]], tuple[str, ...]]]:
        return [
            ("noop", list, ("raw_documents.added", "search_index.upserted")),
            ("edit", lambda: corpus.edit_files(self._paths, number), ("raw_documents.changed",)),
            (
                "rename",
                lambda: corpus.rename_files(self._paths),
                ("raw_documents.added", "raw_documents.removed"),
            ),
            ("delete", lambda: corpus.delete_files(self._paths), ("raw_documents.removed",)),
        ]

    def _run_loss(self, install: BenchmarkInstallation, run_phase: _PhaseRunner) -> None:
        """Delete the index behind the project's back, check that a sync notices, and repair it."""
        before = install.count_entries()
        self._servers.drop_indexes(f"{install.name}-index-*")
        self.is_loss_noticed = install.run_unmeasured("sync", TENANT).returncode != 0
        run_phase("loss", {"embeddings.embedded": 0}, "--repair")
        install.sync("--repair", tenant=_WARM_UP)
        _require_equal("entries after a repair", install.count_entries(), before)

    def _run_kill(self, name: str) -> None:
        """Kill the first sync half-way with SIGKILL; the next sync finishes the work."""
        corpus.restore_files(self._folder, self._paths)
        install = BenchmarkInstallation.new(
            name, self._servers, self._work, self._folder, forks=True
        )
        warm_up_entries = install.count_entries()
        for phase, kill_after in (("killed", self._first_sync / 2), ("kill", None)):
            cost = install.sync(kill_after=kill_after)
            self.costs[phase].append(cost.as_json())
            print_cost(phase, cost)
        _require_equal(
            "entries after a kill", install.count_entries() - warm_up_entries, self.entry_count
        )
        install.remove()

    def _run_bare(self, number: int) -> None:
        for phase, command in (("bare", "load"), ("bare.graphs", "graphs")):
            self._run_bare_load(phase, command, f"bare-{command}-{number}")

    def _run_bare_load(self, phase: str, command_name: str, index_name: str) -> None:
        environment = {"RAG_ASSETS_ELASTICSEARCH_URL": self._servers.elasticsearch_url}
        meter = Meter(self._servers.pids, environment, self._work / "commands.log")
        command = ["-m", "benchmarks.bare", command_name, str(self._entries), index_name]
        cost = meter.run([sys.executable, *command])
        self.costs[phase].append(cost.as_json())
        _require_equal(
            "entries written bare", self._servers.count_entries(index_name), self.entry_count
        )
        self._servers.drop_indexes(index_name)
        print_cost(phase, cost)


class _PhaseRunner:
    """Runs a phase, verifies that it did the expected work, and records its cost."""

    def __init__(
        self,
        costs: Mapping[str, list[dict[str, Any]]],
        install: BenchmarkInstallation,
        *,
        inside: bool,
    ) -> None:
        self._costs, self._install, self._inside = costs, install, inside

    def __call__(self, phase: str, expected: Mapping[str, int], *options: str) -> Cost:
        cost = self._install.sync(*options, inside=self._inside)
        for path, count in expected.items():
            stage, _, name = path.partition(".")
            _require_equal(f"{phase}: {path}", cost.answer["stages"][stage][name], count)
        self._costs[f"{phase}.inside" if self._inside else phase].append(cost.as_json())
        print_cost(f"{phase}{' inside' if self._inside else ''}", cost)
        return cost


def _require_equal(label: str, actual: int, expected: int) -> None:
    if actual != expected:
        sys.exit(f"{label}: {actual} instead of {expected}: the figures would be invalid")


def print_cost(phase: str, cost: Cost) -> None:
    """Print one line with the cost of a phase."""
    inside = f" (inside {cost.inside:.2f} s)" if cost.inside is not None else ""
    servers = ", ".join(f"{name} {cpu:.1f} s" for name, cpu in cost.servers_cpu.items())
    print(
        f"{phase:22} {cost.wall:7.2f} s{inside}, CPU {cost.cpu:.1f} s, {servers},"
        f" {cost.peak_mb:.0f} MB",
        flush=True,
    )


def clear(work: Path) -> None:
    """Remove the files of the last run, but keep downloads."""
    for folder in ("homes", "corpus", "warm-up"):
        shutil.rmtree(work / folder, ignore_errors=True)
    for file in ("entries.jsonl", "modules.txt", "commands.log"):
        (work / file).unlink(missing_ok=True)


def main() -> None:
    """Measure and save the result."""
    parser = create_parser(__doc__, name="chain", work=WORK)
    parser.add_argument("--files", type=int, default=corpus.FILES)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=PHASES, default=PHASES)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    arguments = parser.parse_args()
    clear(arguments.work)
    before = describe_machine()
    with benchmark_servers(arguments.work) as servers:
        only, ways = arguments.only, arguments.ways
        benchmark = Benchmark(servers, arguments.work, arguments.files, only, ways)
        for number in range(1, arguments.rounds + 1):
            benchmark.run_round(number)
    figures = {
        "files": arguments.files,
        "entries": benchmark.entry_count,
        "rounds": arguments.rounds,
        "loss_noticed": benchmark.is_loss_noticed,
        "costs": benchmark.costs,
    }
    report_result(arguments.name, "chain", before, json.loads(json.dumps(figures)))


if __name__ == "__main__":
    main()
