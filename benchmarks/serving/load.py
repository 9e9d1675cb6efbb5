"""Common parts of processes that make load: options, order of requests, times."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil

from rag_assets.tenants.modes import SearchMode


class LoadTimer:
    """Times requests, and prints the results.

    CPU is this process's own, between the first request and the last answer, without reading
    questions and examining answers.
    """

    def __init__(self) -> None:
        self.latencies: list[float] = []
        self._seconds = self._cpu = self._idle = 0.0

    @contextmanager
    def time_load(self) -> Iterator[None]:
        """Time the whole load."""
        started, cpu, idle = time.perf_counter(), time.process_time(), _read_idle()
        yield
        self._seconds = time.perf_counter() - started
        self._cpu, self._idle = time.process_time() - cpu, _read_idle() - idle

    @contextmanager
    def time_request(self) -> Iterator[None]:
        """Time one request."""
        started = time.perf_counter()
        yield
        self.latencies.append(time.perf_counter() - started)

    def print_report(self, hits: Sequence[int]) -> None:
        """Print the result.

        Args:
            hits: number of hits of each answer; an answer without any ends the benchmark.
        """
        if not hits or not all(hits):
            raise SystemExit(f"{sum(not hit for hit in hits)} answers without a hit")
        report = {
            "seconds": self._seconds,
            "cpu": self._cpu,
            "idle": self._idle,
            "latencies": self.latencies,
            "hits": sum(hits) / len(hits),
        }
        print(json.dumps(report))


def _read_idle() -> float:
    times = psutil.cpu_times()
    return float(times.idle + getattr(times, "iowait", 0.0))


class LoadOptions(argparse.Namespace):
    """Options of every kind of load."""

    url: str
    questions: Path
    callers: int
    requests: int
    start: int
    different: int | None
    mode: SearchMode
    top_k: int

    def choose_questions(self, count: int) -> list[int]:
        """Return the numbers of the questions to send, in order.

        Args:
            count: number of questions.
        """
        different = self.different or self.requests
        return [(self.start + n % different) % count for n in range(self.requests)]


def build_parser(description: str) -> argparse.ArgumentParser:
    """Build a parser with the options of every kind of load."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("questions", type=Path)
    parser.add_argument("--callers", type=int, default=50)
    parser.add_argument("--requests", type=int, default=1_000)
    parser.add_argument("--start", type=int, default=0, help="number of the first question")
    parser.add_argument(
        "--different", type=int, help="number of different questions; default: one per request"
    )
    parser.add_argument("--mode", choices=("hybrid", "knn", "text"), default="hybrid")
    parser.add_argument("--top-k", type=int, default=5)
    return parser
