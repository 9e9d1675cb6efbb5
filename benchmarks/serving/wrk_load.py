"""Put load on the service with wrk, if it is installed: a second opinion on service_load.

    RAG_ASSETS_TOKEN=… python -m benchmarks.serving.wrk_load URL FILE --callers 50

wrk runs for a duration, not for a number of requests; the duration is too short to send all of
them, so that no question is repeated.
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

from benchmarks.serving.load import LoadOptions, build_parser
from benchmarks.serving.questions import read_questions

_SCRIPT = Path(__file__).with_name("questions.lua")
_FASTEST = 150
"""Requests per second that wrk rarely exceeds."""


def main() -> None:
    """Send the requests, and report their times."""
    options = build_parser(__doc__).parse_args(namespace=LoadOptions())
    queries = read_questions(options.questions).queries
    with tempfile.NamedTemporaryFile("w") as bodies:
        for number in options.choose_questions(len(queries)):
            query = {"query": queries[number], "top_k": options.top_k, "mode": options.mode}
            bodies.write(json.dumps(query) + "\n")
        bodies.flush()
        seconds = max(2, options.requests // _FASTEST)
        command = ["wrk", "-t1", f"-c{options.callers}", f"-d{seconds}s", "-s", str(_SCRIPT)]
        idle, started = psutil.cpu_times().idle, time.perf_counter()
        process = subprocess.run(
            [
                *command,
                f"{options.url}/rag/query",
                "--",
                bodies.name,
                os.environ["RAG_ASSETS_TOKEN"],
            ],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        idle, elapsed = psutil.cpu_times().idle - idle, time.perf_counter() - started
    report = json.loads(process.stdout.splitlines()[-1])
    if report.pop("failed"):
        raise SystemExit(f"requests of wrk failed: {process.stdout}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        json.dumps(
            {**report, "seconds": elapsed, "idle": idle, "cpu": used.ru_utime + used.ru_stime}
        )
    )


if __name__ == "__main__":
    main()
