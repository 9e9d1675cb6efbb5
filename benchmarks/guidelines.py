"""Measure team guidelines: the stages from upload to READY, and contexts meanwhile and at rest.

    python -m benchmarks.guidelines                    a PDF of over 500 passages, then ten at once
    python -m benchmarks.guidelines --sections 40 --at-once 3 --contexts 20 --name trial

reportlab makes the PDF from the prose that other benchmarks use. It is uploaded through the API to
a separate service, with the daemon and the watcher running, and embedded by a server that takes
200 ms per request. Then ten PDFs are uploaded at once to the projects of three organizations.
Contexts are requested one after another: each task is new, so each is embedded.
"""

from __future__ import annotations

import argparse
import io
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jwt
import numpy as np

from benchmarks import prose
from benchmarks.measure import CLI, PROJECT, create_parser, describe_machine, report_result
from benchmarks.servers import benchmark_servers, make_home, run_service, write_tenants_file
from rag_assets.client import Client

WORK = PROJECT / ".local" / "benchmark-guidelines"
ORGANIZATIONS = ("first", "second", "third")
PROJECT_ID = "web"
LATENCY = 200
"""Latency of the embedding server, in milliseconds."""

_SECRET = "an example secret of more than 32 bytes"  # noqa: S105 - of this benchmark alone
_READY_SECONDS = 600
_LOOK_SECONDS = 0.2


def main() -> None:
    """Measure and save the result."""
    parser = create_parser(__doc__, name="guidelines", work=WORK)
    parser.add_argument("--sections", type=int, default=1_100, help="sections per PDF")
    parser.add_argument("--at-once", type=int, default=10)
    parser.add_argument("--contexts", type=int, default=200, help="number of contexts at rest")
    arguments = parser.parse_args()
    before = describe_machine()
    home = arguments.work / "home"
    make_home(home)
    with embedding_server() as url, benchmark_servers(arguments.work) as servers:
        servers.use_home(
            home,
            "guidelines",
            RAG_ASSETS_PRIVATE_ENDPOINTS="127.0.0.1",
            RAG_ASSETS_JWT_SECRET=_SECRET,
            RAG_ASSETS_SERVICE_RATE="100000/minute",
        )
        make_projects(home, url)
        with run_background(), run_service(home / "service.log") as (port, _):
            results = measure(port, arguments)
    figures = {"embedder_ms": LATENCY, **results}
    report_result(arguments.name, "team guidelines", before, figures)


def measure(port: int, arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure one upload alone, contexts at rest, and several uploads with contexts meanwhile."""
    clients = [
        Client(
            f"http://127.0.0.1:{port}", _create_token(organization), project=PROJECT_ID, timeout=120
        )
        for organization in ORGANIZATIONS
    ]
    first, *_ = clients
    first_pdf = build_pdf(0, arguments.sections)
    alone = upload_guideline(first, "alone.pdf", first_pdf)
    rest = [_time_context(first, f"at rest {n}") for n in range(arguments.contexts)]
    files = [build_pdf(1 + n, arguments.sections) for n in range(arguments.at_once)]
    busy: list[float] = []
    ended = threading.Event()

    def ask() -> None:
        number = 0
        while not ended.is_set():
            number += 1
            busy.append(_time_context(first, f"meanwhile {number}"))

    asker = threading.Thread(target=ask)
    asker.start()
    began = time.monotonic()
    with ThreadPoolExecutor(len(files)) as pool:
        at_once = list(
            pool.map(
                lambda n: upload_guideline(
                    clients[n % len(clients)], f"{n}.pdf", files[n], poll_seconds=1.0
                ),
                range(len(files)),
            )
        )
    at_once_seconds = time.monotonic() - began
    ended.set()
    asker.join()
    for client in clients:
        client.close()
    return {
        "pdf_mb": round(len(first_pdf) / 1e6, 1),
        "alone": alone,
        "at_once": {
            "files": len(files),
            "projects": len(clients),
            "seconds": round(at_once_seconds, 1),
            "ready_seconds": sorted(each["ready_seconds"] for each in at_once),
            "chunks": sum(each["chunks"] for each in at_once),
        },
        "contexts_at_rest": _compute_percentiles(rest),
        "contexts_meanwhile": _compute_percentiles(busy),
    }


def upload_guideline(
    client: Client, name: str, content: bytes, *, poll_seconds: float = _LOOK_SECONDS
) -> dict[str, Any]:
    """Upload a file and poll it until it is READY; return the seconds, in total and by stage.

    Args:
        client: client of the project.
        name, content: the file.
        poll_seconds: pause between two polls.
    """
    began = time.monotonic()
    id_ = client.upload_guideline(name, content).document.id
    received = time.monotonic()
    stages: Counter[str] = Counter()
    last, stage = received, "queued"
    while time.monotonic() - began < _READY_SECONDS:
        document = client.guideline(id_)
        now = time.monotonic()
        stages[stage] += now - last  # type: ignore[assignment]
        last, stage = now, document.stage or ""
        if document.status != "PROCESSING":
            if document.status != "READY":
                sys.exit(f"{name}: {document.status}: {document.error_message}")
            return {
                "chunks": document.chunk_count,
                "tokens": document.token_count,
                "ready_seconds": round(now - began, 2),
                "stages": {
                    "upload": round(received - began, 2),
                    **{each: round(seconds, 2) for each, seconds in stages.items()},
                },
            }
        time.sleep(poll_seconds)
    sys.exit(f"{name}: not READY within {_READY_SECONDS} seconds")


def build_pdf(seed: int, sections: int) -> bytes:
    """Return a PDF of that many sections of prose, different for each seed."""
    from reportlab.lib.styles import getSampleStyleSheet
    from reportlab.platypus import Paragraph, SimpleDocTemplate

    rng, styles, buffer = random.Random(seed), getSampleStyleSheet(), io.BytesIO()
    flow: list[Any] = []
    for _ in range(sections):
        flow.append(Paragraph(prose.draw_title(rng), styles["Heading2"]))
        flow += [Paragraph(prose.draw_paragraph(rng), styles["BodyText"]) for _ in range(3)]
    SimpleDocTemplate(buffer).build(flow)
    return buffer.getvalue()


def make_projects(home: Path, url: str) -> None:
    """Create three organizations with guidelines switched on, a key, and one project each."""
    openai = {"provider": "openai", "base_url": url, "price": {"per_million": 0.02}}
    # Vectors are random: without a threshold, every context is built completely.
    projects = {"embedder": {"providers": [openai]}, "retrieval": {"min_score": -1.0}}
    write_tenants_file(home, [], projects=projects)
    for organization in ORGANIZATIONS:
        _run("projects", "put", organization, PROJECT_ID, "--json")
        _run("organizations", "put", organization, "--guidelines", "--json")
        _run(
            "keys", "set", organization, "openai", "--organization", stdin_text="benchmark-key-0001"
        )


@contextmanager
def run_background() -> Iterator[None]:
    """Run the daemon and the watcher until the block ends."""
    _run("up")
    try:
        yield
    finally:
        _run("down")


@contextmanager
def embedding_server() -> Iterator[str]:
    """Start an embedding server in a process of its own; yield its address."""
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "benchmarks.latency_server", "--counting"),
            *("--milliseconds", str(LATENCY), "--dimensions", "1536"),
        ],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"  # type: ignore[union-attr]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def _time_context(client: Client, task: str) -> float:
    began = time.monotonic()
    context = client.guideline_context(task)
    seconds = time.monotonic() - began
    if context.source != "documents":
        sys.exit(f"a context has no passages: {context.reason}")
    return seconds


def _compute_percentiles(seconds: Sequence[float]) -> dict[str, Any]:
    p50, p95, p99 = (round(1_000 * float(np.percentile(seconds, at))) for at in (50, 95, 99))
    return {"contexts": len(seconds), "p50_ms": p50, "p95_ms": p95, "p99_ms": p99}


def _create_token(organization: str) -> str:
    claims = {"sub": "bench", "exp": int(time.time()) + 7_200, "role": "admin"}
    return jwt.encode({**claims, "organization": organization}, _SECRET)


def _run(*arguments: str, stdin_text: str | None = None) -> None:
    subprocess.run(
        [*CLI, *arguments],
        cwd=PROJECT,
        check=True,
        input=stdin_text,
        stdout=subprocess.DEVNULL,
        text=True,
    )


if __name__ == "__main__":
    main()
