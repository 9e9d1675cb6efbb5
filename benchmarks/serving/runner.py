"""Run cases, and report times and CPU."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from benchmarks.measure import PROJECT, read_tree_cpu
from benchmarks.servers import Servers
from benchmarks.serving.cases import LoadCase
from benchmarks.serving.installation import QUESTIONS, RunningService, ServingInstallation
from rag_assets.runtime.net import mask_url

_FEW = 50
"""Number of questions of a case that repeats them."""
_WARM_UP = 500
_COMPILED = 5_000
"""Searches."""
_OURS = {"service": "service_load", "wrk": "wrk_load"}


class Runner:
    """Runs cases.

    Args:
        servers, service: processes whose CPU is measured.
        installation: has the questions.
        requests: number of requests of a case.
    """

    def __init__(
        self,
        servers: Servers,
        installation: ServingInstallation,
        service: RunningService,
        requests: int,
    ) -> None:
        self._url = servers.elasticsearch_url
        self._installation, self._service, self._requests = installation, service, requests
        self._pids = {"service": service.pid, **servers.pids}
        # Answers may be cached: no question is sent twice unless the case repeats them.
        self._next = 0

    def warm_up(self) -> None:
        """Let servers compile and load what they need, and cache the repeated questions."""
        # Elasticsearch's JIT compiles for that long, which would slow the first case.
        self._run_case(LoadCase("bare"), 0, _COMPILED)
        self._run_case(LoadCase("service"), self._reserve_questions(_COMPILED), _COMPILED)
        for tenant in self._service.tokens:
            self._run_case(
                LoadCase("service", tenant=tenant), self._reserve_questions(_WARM_UP), _WARM_UP
            )
        self._run_case(LoadCase("service", repeated=True), 0, _FEW)

    def run(self, case: LoadCase) -> dict[str, Any]:
        """Run a case; return times in milliseconds, and CPU in milliseconds per request."""
        # Few callers take long, and their latencies vary little.
        requests = self._requests if case.callers > 1 else self._requests // 4
        start = (
            self._reserve_questions(requests) if case.target in _OURS and not case.repeated else 0
        )
        before = self._read_cpu()
        answer = self._run_case(case, start, requests)
        after = self._read_cpu()
        # wrk runs for a duration, not for a number of requests.
        requests = answer.get("requests", requests)
        used = {name: after[name] - before[name] for name in after} | {"load": answer["cpu"]}
        cores = len(os.sched_getaffinity(0))
        elsewhere = max(0.0, cores - (answer["idle"] + sum(used.values())) / answer["seconds"])
        result = {
            **asdict(case),
            "requests": requests,
            "seconds": round(answer["seconds"], 3),
            "per_second": round(requests / answer["seconds"], 1),
            **compute_percentiles(answer["latencies"]),
            "cpu_ms": {k: round(1_000 * cpu / requests, 2) for k, cpu in used.items()},
            "elsewhere": round(elsewhere, 2),
        }
        _print_result(case, result)
        return result

    def _run_case(self, case: LoadCase, start: int, requests: int) -> dict[str, Any]:
        questions = self._installation.get_questions_path(case.tenant)
        token = self._service.tokens[case.tenant]
        module, url, options_of_target = self._build_target(case)
        options = {
            "callers": case.callers,
            "requests": requests,
            "start": start,
            "mode": case.mode,
            "top-k": case.top_k,
            **({"different": _FEW} if case.repeated else {}),
        }
        command = [
            sys.executable,
            "-m",
            f"benchmarks.serving.{module}",
            url,
            str(questions),
            *options_of_target,
        ]
        for name, value in options.items():
            command += [f"--{name}", str(value)]
        return _run_command(
            command, {"RAG_ASSETS_TOKEN": token, "RAG_ASSETS_ELASTICSEARCH_URL": self._url}
        )

    def _build_target(self, case: LoadCase) -> tuple[str, str, list[str]]:
        if case.target in _OURS:
            return _OURS[case.target], self._service.url, []
        client = "threads" if case.target == "bare-threads" else "async"
        lean = ["--lean"] if case.target == "bare-lean" else []
        return "bare_load", mask_url(self._url), ["--client", client, *lean]

    def _reserve_questions(self, requests: int) -> int:
        start = self._next
        self._next = start + requests
        if self._next > QUESTIONS:
            raise SystemExit("questions would be repeated: send fewer requests or draw more")
        return start

    def _read_cpu(self) -> dict[str, float]:
        return {name: read_tree_cpu(pid) for name, pid in self._pids.items()}


def _run_command(command: list[str], environment: Mapping[str, str]) -> dict[str, Any]:
    process = subprocess.run(
        command,
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": str(PROJECT), **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if process.returncode:
        raise SystemExit(f"{command[2]} failed")
    answer: dict[str, Any] = json.loads(process.stdout)
    return answer


def compute_percentiles(latencies: Sequence[float]) -> dict[str, float]:
    """Return the 50th, 95th and 99th percentile in milliseconds.

    Args:
        latencies: seconds; at least one value.
    """
    ordered = sorted(latencies)
    return {
        f"p{part}": round(1_000 * ordered[math.ceil(part / 100 * len(ordered)) - 1], 2)
        for part in (50, 95, 99)
    }


def _print_result(case: LoadCase, result: Mapping[str, Any]) -> None:
    cpu = ", ".join(f"{name} {ms}" for name, ms in result["cpu_ms"].items())
    print(
        f"{case.name:34} p50 {result['p50']:7.1f} p95 {result['p95']:7.1f}"
        f" p99 {result['p99']:7.1f} ms {result['per_second']:7.1f}/s"
        f" | CPU ms: {cpu} | elsewhere {result['elsewhere']}",
        flush=True,
    )
