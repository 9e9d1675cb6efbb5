"""Measure commands: time, CPU, memory, and the CPU of the servers behind them."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from rag_assets.runtime.elasticsearch_install import ELASTICSEARCH_VERSION

PROJECT = Path(__file__).resolve().parent.parent
WORK = PROJECT / ".local" / "benchmark"
"""Default folder for files, servers and environments of benchmarks."""
RESULTS = Path(__file__).resolve().parent / "results"
CLI = (sys.executable, "-m", "rag_assets.cli")
"""The command line of rag-assets in a process of its own."""

_SAMPLE_SECONDS = 0.25
_SETTLED_CPU_SECONDS = 0.05
_SETTLED_SAMPLES = 4
_SETTLING_SECONDS = 300
_PACKAGES = ("rag-assets", "dagster", "elasticsearch", "polars", "deltalake", "numpy")
_KILLED = -9


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one command.

    Attributes:
        wall: seconds from its start to its end.
        inside: seconds of the work alone, without interpreter startup and imports, if the command
            reports them.
        cpu: CPU seconds of its process and its descendants.
        peak_mb: peak memory of these processes together (PSS, MB), sampled four times a second.
        servers_cpu: CPU seconds by server, until it was idle again: merges and flushes that follow
            belong to the cost.
        answer: the command's output, parsed as JSON.
    """

    wall: float
    cpu: float
    peak_mb: float
    servers_cpu: Mapping[str, float]
    inside: float | None = None
    answer: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Return the cost as JSON, rounded, for a result file."""
        rounded = {
            name: round(value, 3) if isinstance(value, float) else value
            for name, value in asdict(self).items()
        }
        rounded["servers_cpu"] = {k: round(v, 2) for k, v in self.servers_cpu.items()}
        return rounded


class CommandFailed(SystemExit):
    """A measured command failed; ends the benchmark unless it is caught.

    Attributes:
        reason: its output, or the last line of its log.
    """

    def __init__(self, code: int, out: str, log: Path) -> None:
        lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
        self.reason = out.strip() or (lines[-1] if lines else f"exit code {code}")
        super().__init__(f"a command failed with exit code {code}: {self.reason} (see {log})")


class Meter:
    """Runs commands and returns their costs.

    Args:
        servers: pids by name; their descendants count as well.
        environment: variables of every command, added to this process's own.
        log: file for the commands' standard error.

    Attributes:
        helpers: pids of processes that work for the commands: their CPU and memory, including
            descendants, is added to the command's.
    """

    def __init__(
        self, servers: Mapping[str, int], environment: Mapping[str, str], log: Path
    ) -> None:
        self.helpers: list[int] = []
        self._servers = servers
        self._environment = environment
        self._log = log

    def run(self, command: Sequence[str], *, kill_after: float | None = None) -> Cost:
        """Run a command to its end, or kill it with SIGKILL after `kill_after` seconds.

        Its output is parsed as JSON, unless it was killed. `inside` and `cpu` in that output
        replace the measured values.

        Raises:
            CommandFailed: it failed.
        """
        before, helped = self._servers_cpu(), self._helpers_cpu()
        started = time.perf_counter()
        with (
            tempfile.TemporaryFile("w+") as out,
            self._log.open("a") as log,
            subprocess.Popen(
                command,
                cwd=PROJECT,
                env=self.environment,
                stdout=out,
                stderr=log,
            ) as process,
            _Sampler([process.pid, *self.helpers]) as sampler,
        ):
            if kill_after is not None:
                time.sleep(kill_after)
                process.kill()
            # wait4 also returns the resource usage of the process and its children.
            _, status, usage = os.wait4(process.pid, 0)
            wall = time.perf_counter() - started
            process.returncode = os.waitstatus_to_exitcode(status)
            out.seek(0)
            answer = self._parse_answer(
                process.returncode, out.read(), killed=kill_after is not None
            )
        self.settle()
        after = self._servers_cpu()
        cpu = usage.ru_utime + usage.ru_stime + self._helpers_cpu() - helped
        return Cost(
            wall=wall,
            inside=answer.pop("inside", None),
            cpu=answer.pop("cpu", cpu),
            peak_mb=sampler.peak / 1e6,
            servers_cpu={name: after[name] - before[name] for name in after},
            answer=answer,
        )

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of commands."""
        return {**os.environ, "PYTHONPATH": str(PROJECT), **self._environment}

    def settle(self) -> None:
        """Wait until the servers have finished their background work."""
        deadline = time.monotonic() + _SETTLING_SECONDS
        before, quiet = self._servers_cpu(), 0
        # A merge may begin a moment after the write that caused it.
        while quiet < _SETTLED_SAMPLES and time.monotonic() < deadline:
            time.sleep(0.5)
            now = self._servers_cpu()
            busy = any(now[name] - before[name] > _SETTLED_CPU_SECONDS for name in now)
            before, quiet = now, 0 if busy else quiet + 1

    def _parse_answer(self, code: int, out: str, *, killed: bool) -> dict[str, Any]:
        if killed and code == _KILLED:
            return {}
        if killed:
            sys.exit("the command ended before it could be killed")
        if code:
            raise CommandFailed(code, out, self._log)
        answer: dict[str, Any] = json.loads(out)
        return answer

    def _helpers_cpu(self) -> float:
        return sum(map(read_tree_cpu, self.helpers))

    def _servers_cpu(self) -> dict[str, float]:
        return {name: read_tree_cpu(pid) for name, pid in self._servers.items()}


class _Sampler:
    """Samples the memory of processes and their descendants until the block ends."""

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = pids
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.peak = 0

    def __enter__(self) -> _Sampler:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(_SAMPLE_SECONDS):
            self.peak = max(self.peak, sum(map(_read_tree_memory, self._pids)))


def _read_tree_memory(pid: int) -> int:
    """Return the bytes of a process and its descendants; shared pages count once."""
    try:
        process = psutil.Process(pid)
        members = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    return sum(read_memory(member.pid) for member in members)


def read_memory(pid: int) -> int:
    """Return the PSS of a process in bytes; 0 if it has ended."""
    try:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in rollup.splitlines() if line[:4] == "Pss:")


def read_tree_cpu(pid: int) -> float:
    """Return the CPU seconds of a process, its descendants, and its ended children."""
    process = psutil.Process(pid)
    total = sum(process.cpu_times()[:4])  # user, system, and both of ended children
    for child in process.children(recursive=True):
        try:
            total += sum(child.cpu_times()[:4])
        except psutil.NoSuchProcess:
            continue
    return total


def describe_machine() -> dict[str, Any]:
    """Describe the machine: cores, memory, versions and load."""
    return {
        "processor": _read_processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {
            "elasticsearch server": ELASTICSEARCH_VERSION,
            **{name: version(name) for name in _PACKAGES},
        },
        "load_average": read_load(),
    }


def read_load() -> list[float]:
    """Return the load averages over 1, 5 and 15 minutes."""
    return [round(value, 2) for value in os.getloadavg()]


def _read_processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def save_result(name: str, result: Mapping[str, Any], folder: Path = RESULTS) -> Path:
    """Write a result as JSON; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")
    return path


def read_commit() -> str:
    """Return the commit of this checkout, with `+` if files differ from it; "" without Git."""
    git = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--abbrev=9"]
    done = subprocess.run(
        [*git, "--exclude=*", "--dirty=+"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def report_result(
    name: str, benchmark: str, before: Mapping[str, Any], figures: Mapping[str, Any]
) -> None:
    """Write the result of a benchmark with its date and the machine, and print its path.

    Args:
        name: name of the result file.
        before: the machine before the measurement; see describe_machine.
    """
    head: dict[str, Any] = {"benchmark": benchmark, "taken": datetime.now(UTC).strftime("%Y-%m-%d")}
    head |= {"commit": read_commit(), "machine": before, "load_average_after": read_load()}
    print(save_result(name, {**head, **figures}))


def create_parser(
    doc: str | None, *, name: str | None = None, work: Path | None = None
) -> argparse.ArgumentParser:
    """Create the parser of a benchmark's options, with `--name` and `--work` if they have defaults.

    Args:
        doc: docstring of the benchmark; its first line describes it.
    """
    parser = argparse.ArgumentParser(description=(doc or "").splitlines()[0])
    if name is not None:
        parser.add_argument("--name", default=name, help="name of the result file")
    if work is not None:
        parser.add_argument("--work", type=Path, default=work, help="folder for servers and data")
    return parser
