"""Run the chain and other frameworks through the same phases, on the same corpus and servers.

    python -m benchmarks.rivals                       all of them, one round
    python -m benchmarks.rivals --rounds 3 --only langchain chain

Each framework gets its own environment, made once with uv from requirements/NAME.txt. The phases
and measurements are those of benchmarks.chain; `inside` is without imports. In the phase "loss"
the index, or table, is dropped behind a framework's back: `restored` reports whether its next run
brought the entries back.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from elasticsearch import NotFoundError

from benchmarks import corpus
from benchmarks.chain import PHASES, WAYS, Benchmark, clear, print_cost
from benchmarks.measure import (
    WORK,
    CommandFailed,
    Meter,
    create_parser,
    describe_machine,
    report_result,
)
from benchmarks.rivals.environments import REQUIREMENTS, install_python
from benchmarks.rivals.names import INDEX
from benchmarks.servers import Servers, benchmark_servers

_REPORTED = (
    "cocoindex",
    "langchain-core",
    "langchain-elasticsearch",
    "llama-index-core",
    "llama-index-vector-stores-elasticsearch",
)
"""Packages whose versions the result reports."""
_CHAIN_PHASES = tuple(phase for phase in PHASES if phase not in ("bare", "kill"))


@dataclass(frozen=True, slots=True)
class Rival:
    """One framework in one configuration.

    Attributes:
        name: its label; the part before a hyphen names its requirements.
        module: the module of this package that uses it.
        store: where it stores its entries.
        environment: further environment variables of its module.
    """

    name: str
    module: str
    store: str
    environment: Mapping[str, str] = field(default_factory=dict)


RIVALS = (
    Rival("langchain", "langchain_index", "elasticsearch"),
    Rival("llamaindex", "llamaindex_pipeline", "elasticsearch"),
    Rival("cocoindex", "cocoindex_app", "postgres"),
    Rival("cocoindex-hnsw", "cocoindex_app", "postgres", {"COCOINDEX_VECTOR_INDEX": "hnsw"}),
)


class Contest:
    """Runs frameworks through the phases.

    Args:
        servers: used by one framework at a time.
        work: folder for environments, and for the frameworks' state.
        files: number of documents.
    """

    def __init__(self, servers: Servers, work: Path, files: int) -> None:
        self._servers, self._work = servers, work
        self._folder = work / "corpus"
        self._paths = corpus.write_corpus(self._folder, files)
        self.costs: dict[str, dict[str, list[dict[str, Any]]]] = {}
        self.failures: dict[str, str] = {}

    def run_rival(self, rival: Rival, round_number: int) -> None:
        """Run all phases of one framework; record the reason if it fails."""
        costs = self.costs.setdefault(rival.name, defaultdict(list))
        try:
            python = ensure_environment(rival, self._work / "environments")
            run = _RivalRun(rival, python, self._servers, self._work)
            self._run_phases(run, round_number, costs)
        except (CommandFailed, subprocess.CalledProcessError) as error:
            self.failures[rival.name] = str(error)
            print(f"{rival.name}: {error}")

    def _run_phases(
        self, run: _RivalRun, number: int, costs: dict[str, list[dict[str, Any]]]
    ) -> None:
        corpus.restore_files(self._folder, self._paths)
        changes: dict[str, Callable[[], object]] = {
            "cold": list,
            "noop": list,
            "edit": lambda: corpus.edit_files(self._paths, number),
            "rename": lambda: corpus.rename_files(self._paths),
            "delete": lambda: corpus.delete_files(self._paths),
        }
        for phase, change in changes.items():
            change()
            costs[phase].append(run.measure(phase, self._folder))
        before = run.count_entries()
        run.drop_index()
        try:
            lost = run.measure("loss", self._folder)
        except CommandFailed as error:
            lost = {"failed": error.reason}
        costs["loss"].append({**lost, "restored": run.count_entries() == before})
        run.drop_index()


class _RivalRun:
    """One framework without any state yet."""

    def __init__(self, rival: Rival, python: Path, servers: Servers, work: Path) -> None:
        self._rival, self._python, self._servers = rival, python, servers
        self._state = work / "states" / rival.name
        shutil.rmtree(self._state, ignore_errors=True)
        self._database = servers.create_database("rival")
        with psycopg.connect(self._database, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION vector")
        environment = {
            "RAG_ASSETS_ELASTICSEARCH_URL": servers.elasticsearch_url,
            "RAG_ASSETS_DATABASE_URL": self._database,
            "COCOINDEX_DISABLE_USAGE_TRACKING": "1",
            **rival.environment,
        }
        self._meter = Meter(servers.pids, environment, work / "commands.log")

    def measure(self, phase: str, folder: Path) -> dict[str, Any]:
        """Run the framework once; return its cost and the number of entries afterwards."""
        module = f"benchmarks.rivals.{self._rival.module}"
        cost = self._meter.run([str(self._python), "-m", module, str(folder), str(self._state)])
        print_cost(f"{self._rival.name} {phase}", cost)
        return {**cost.as_json(), "entries": self.count_entries()}

    def count_entries(self) -> int:
        """Count the framework's entries; 0 if there is no index or table."""
        if self._rival.store == "elasticsearch":
            with suppress(NotFoundError):
                return self._servers.count_entries(INDEX)
            return 0
        with psycopg.connect(self._database) as connection, suppress(psycopg.errors.UndefinedTable):
            row = connection.execute(f"SELECT count(*) FROM {INDEX}").fetchone()  # noqa: S608
            return int(row[0]) if row else 0
        return 0

    def drop_index(self) -> None:
        """Drop the index or table, if there is one."""
        if self._rival.store == "elasticsearch":
            self._servers.drop_indexes(f"{INDEX}*")
            return
        with psycopg.connect(self._database, autocommit=True) as connection:
            connection.execute(f"DROP TABLE IF EXISTS {INDEX}")


def ensure_environment(rival: Rival, folder: Path) -> Path:
    """Return the interpreter of a framework's environment; create it if it is missing."""
    name = rival.name.partition("-")[0]
    return install_python(folder / name, REQUIREMENTS / f"{name}.txt")


def read_versions(folder: Path, names: Sequence[str]) -> dict[str, str]:
    """Return the pinned version of each framework's own packages."""
    versions: dict[str, str] = {}
    for path in sorted(folder.glob("*.txt")):
        if path.stem in {name.partition("-")[0] for name in names}:
            pins = [line.split()[0] for line in path.read_text().splitlines() if "==" in line]
            pairs = (pin.partition("==") for pin in pins)
            versions |= {name: version for name, _, version in pairs if name in _REPORTED}
    return versions


def main() -> None:
    """Measure and save the result."""
    names = [rival.name for rival in RIVALS]
    parser = create_parser(__doc__, name="rivals", work=WORK)
    parser.add_argument("--files", type=int, default=corpus.FILES)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=["chain", *names], default=["chain", *names])
    arguments = parser.parse_args()
    clear(arguments.work)
    facts = describe_machine()
    with benchmark_servers(arguments.work) as servers:
        contest = Contest(servers, arguments.work, arguments.files)
        chain = Benchmark(servers, arguments.work, arguments.files, _CHAIN_PHASES, WAYS)
        for number in range(1, arguments.rounds + 1):
            if "chain" in arguments.only:
                chain.run_round(number)
            for rival in RIVALS:
                if rival.name in arguments.only:
                    contest.run_rival(rival, number)
    figures = {
        "files": arguments.files,
        "rounds": arguments.rounds,
        "versions": read_versions(REQUIREMENTS, names),
        "failures": contest.failures,
        "entries": chain.entry_count,
        "costs": {"chain": chain.costs, **contest.costs},
    }
    report_result(arguments.name, "rivals", facts, json.loads(json.dumps(figures)))


if __name__ == "__main__":
    main()
