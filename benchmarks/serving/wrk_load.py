"""The service asked by wrk: a second opinion on service_load, where wrk is installed.

    RAG_ASSETS_TOKEN=… python -m benchmarks.serving.wrk_load URL FILE --callers 50

wrk asks for a time and not a number of questions; it is given one in which so many questions are
hardly all asked.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import tempfile
import time
from pathlib import Path

import psutil

from benchmarks.serving.load import Asked, parser
from benchmarks.serving.questions import read

_SCRIPT = Path(__file__).with_name("questions.lua")
_FASTEST = 150
"""Requests a second."""


def main() -> None:
    """Send a request, and report its time."""
    asked = parser(__doc__).parse_args(namespace=Asked())
    queries = read(asked.questions).queries
    with tempfile.NamedTemporaryFile("w") as bodies:
        for number in asked.chosen(len(queries)):
            wanted = {"query": queries[number], "top_k": asked.top_k, "mode": asked.mode}
            bodies.write(json.dumps(wanted) + "\n")
        bodies.flush()
        seconds = max(2, asked.requests // _FASTEST)
        command = ["wrk", "-t1", f"-c{asked.callers}", f"-d{seconds}s", "-s", str(_SCRIPT)]
        idle, started = psutil.cpu_times().idle, time.perf_counter()
        done = subprocess.run(
            [*command, f"{asked.url}/rag/query", "--", bodies.name, os.environ["RAG_ASSETS_TOKEN"]],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        idle, taken = psutil.cpu_times().idle - idle, time.perf_counter() - started
    told = json.loads(done.stdout.splitlines()[-1])
    if told.pop("failed"):
        raise SystemExit(f"requests of wrk failed: {done.stdout}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        json.dumps({**told, "seconds": taken, "idle": idle, "cpu": used.ru_utime + used.ru_stime})
    )


if __name__ == "__main__":
    main()
