"""Measure 100,000 entries of experience: captures, checkpoints, ticks, questions, memory.

    python -m benchmarks.experience_scale [--entries N] [--kept] [--name trial]

Entries combine the problems and solutions of examples/experience, numbered so that all differ. The
embedder is the deterministic one, so that only the project's own work counts. --kept measures
ticks and questions again, on the data of the last run.
"""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from benchmarks.experience import read_rows
from benchmarks.measure import (
    CLI,
    PROJECT,
    RESULTS,
    Meter,
    create_parser,
    describe_machine,
    report_result,
)
from benchmarks.servers import Servers, benchmark_servers, make_home
from rag_assets.api.experience_responses import Answer
from rag_assets.cli.session import Session
from rag_assets.privacy.masker import get_masker
from rag_assets.search import AsyncRetriever
from rag_assets.search.model import Caller
from rag_assets.sensors.state import ParsedTenants, read_tenant_states
from rag_assets.systems.experience.model import (
    CheckpointDraft,
    EntryDraft,
    FailureQuestion,
    ProjectDraft,
)
from rag_assets.systems.experience.questions import Questions
from rag_assets.systems.experience.service import Experience

WORK = PROJECT / ".local" / "benchmark-experience-scale"
TENANT = "lessons"
DATABASE = "experience_scale"
DIMENSIONS = 384
PROJECTS = [UUID(int=number) for number in range(1, 201)]
CAPTURING_THREADS = 4
TICKS = 50
QUESTIONS = 300
LATER = 100
"""Number of entries captured after the first sync."""
_SYNC = [*CLI, "sync", TENANT, "--json"]


def main() -> None:
    """Measure and save the result."""
    arguments = _parse_arguments()
    before = describe_machine()
    with benchmark_servers(WORK, fresh=not arguments.kept) as servers:
        if arguments.kept:
            result = json.loads((RESULTS / f"{arguments.name}.json").read_text())
            set_environment(servers.get_database_url(DATABASE), servers)
        else:
            result = capture_and_index(servers, arguments.entries)
        with Session() as session:
            experience = Experience(session.catalog, get_masker(session.settings.local))
            checkpoint_ticks = [
                1_000 * time_call(lambda: check_checkpoints(experience)) for _ in range(TICKS)
            ]
            ticks = [1_000 * time_call(lambda: check_sources(session)) for _ in range(TICKS)]
            question_times = asyncio.run(time_questions(session))
            patterns = experience.administration.build_report(
                experience.get_record(TENANT)
            ).patterns
    result |= {
        "patterns": patterns,
        "checkpoints_tick_ms": compute_percentiles(checkpoint_ticks),
        "tick_ms": compute_percentiles(ticks),
        "question_ms": compute_percentiles(question_times),
    }
    report_result(arguments.name, "experience-scale", before, result)


def capture_and_index(servers: Servers, entries: int) -> dict[str, Any]:
    """Capture and index the entries; return the costs."""
    meter = Meter(servers.pids, make_installation(servers), WORK / "log")
    with Session() as session:
        experience = Experience(session.catalog, get_masker(session.settings.local))
        for number, project in enumerate(PROJECTS):
            experience.put_project(TENANT, project, ProjectDraft(name=f"Project {number}"))
        capture_seconds = time_call(lambda: capture_entries(experience, range(entries)))
        checkpoint_seconds = time_call(lambda: request_checkpoint(experience))
        first = meter.run(_SYNC)
        capture_entries(experience, range(entries, entries + LATER))
        request_checkpoint(experience)
        later = meter.run(_SYNC)
    return {
        "entries": entries,
        "captures_per_second": round(entries / capture_seconds, 1),
        "checkpoint_request_seconds": round(checkpoint_seconds, 2),
        "first_sync": first.as_json() | {"answer": {}},
        "entries_per_second": round(entries / first.wall, 1),
        "later_entries": LATER,
        "later_sync": later.as_json() | {"answer": {}},
    }


def make_installation(servers: Servers) -> dict[str, str]:
    """Make an installation with one tenant; return its environment."""
    home = WORK / "home"
    embedder = {"provider": "deterministic", "dimensions": DIMENSIONS}
    tenant = {"id": TENANT, "profile": "experience", "embedder": embedder}
    make_home(home, [tenant])
    return set_environment(servers.create_database(DATABASE), servers)


def set_environment(database: str, servers: Servers) -> dict[str, str]:
    """Set and return the environment variables of the installation."""
    environment = {
        "RAG_ASSETS_HOME": str(WORK / "home"),
        "RAG_ASSETS_DATABASE_URL": database,
        "RAG_ASSETS_ELASTICSEARCH_URL": servers.elasticsearch_url,
    }
    os.environ |= environment
    return environment


def capture_entries(experience: Experience, numbers: range) -> None:
    """Capture one entry for each number, from several threads."""
    examples = [row for row in read_rows("entries") if row["entry_type"] == "failure_solution"]

    def capture_one(number: int) -> None:
        problem, solution = examples[number % len(examples)], examples[number // 7 % len(examples)]
        draft = EntryDraft(
            entry_type="failure_solution",
            project_id=PROJECTS[number % len(PROJECTS)],
            agent_type=problem["agent_type"],
            failure_description=f"{problem['failure_description']} Case {number}.",
            error_message=problem.get("error_message"),
            solution_steps=solution["solution_steps"],
            success_verified=True,
        )
        experience.capture(TENANT, draft, by="benchmark")

    with ThreadPoolExecutor(CAPTURING_THREADS) as threads:
        for _ in threads.map(capture_one, numbers):
            pass


def request_checkpoint(experience: Experience) -> None:
    """Request a checkpoint of all projects."""
    draft = CheckpointDraft(checkpoint_type="manual")
    experience.request_checkpoint(TENANT, draft, by="benchmark")


def check_checkpoints(experience: Experience) -> None:
    """Do the work of a tick of the checkpoint sensor for all tenants, when no checkpoint waits."""
    if experience.checkpoints.find_waiting(datetime.now(UTC)):
        sys.exit("a checkpoint is still waiting")


def check_sources(session: Session) -> None:
    """Do the work of a tick of the source sensor for the tenant, when nothing is due."""
    records = [session.catalog.tenants.get(TENANT)]
    [(_, state)] = read_tenant_states(session.catalog, records, ParsedTenants(), session.settings)
    if isinstance(state, Exception):
        raise state


async def time_questions(session: Session) -> list[float]:
    """Ask questions one after another; return the milliseconds of each."""
    retriever = AsyncRetriever(session.catalog, session.store, session.embedders)
    record = session.catalog.tenants.get(TENANT)
    asking = Questions(session.catalog, retriever)
    texts = [
        row["failure_description"] for row in read_rows("questions") if row["kind"] == "failure"
    ]
    times = []
    try:
        for number in range(QUESTIONS):
            question = FailureQuestion(
                failure_description=f"{texts[number % len(texts)]} {number}",
                agent_type="backend-developer",
            )
            started = time.perf_counter()
            answer: Answer = await asking.answer_failure(record, question, Caller())
            times.append(1_000 * (time.perf_counter() - started))
            if not answer.patterns:
                sys.exit("a question was not answered")
    finally:
        await retriever.close()
    return times


def time_call(work: Callable[[], object]) -> float:
    """Return the seconds that a call takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def compute_percentiles(values: list[float]) -> dict[str, float]:
    """Return the median and the 95th percentile."""
    return {
        "p50": round(statistics.median(values), 1),
        "p95": round(statistics.quantiles(values, n=20)[-1], 1),
    }


def _parse_arguments() -> Any:
    parser = create_parser(__doc__)
    parser.add_argument("--entries", type=int, default=100_000)
    parser.add_argument("--kept", action="store_true")
    parser.add_argument("--name", default="experience-scale")
    return parser.parse_args()


if __name__ == "__main__":
    main()
