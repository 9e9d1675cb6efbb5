"""Measure code memory: a first sync, an unchanged sync, a commit, walks and questions.

    python -m benchmarks.code_memory [--repository PATH] [--copies N]

The default repository is the example application, embedded by the shipped model. Each question is
asked with the steps of code memory and with those of every other profile, in alternating order:
the ratio is the cost of the walk. All questions are then asked again, with cached vectors.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pygit2

from benchmarks.measure import CLI, PROJECT, create_parser, describe_machine, report_result
from benchmarks.servers import Servers, benchmark_servers, write_tenants_file
from rag_assets.cli.session import Session
from rag_assets.search import AsyncRetriever
from rag_assets.search.model import Caller, SearchRequest
from rag_assets.search.plan import StepLists
from rag_assets.systems.code_memory.catalog.code_catalog import get_code_catalog
from rag_assets.systems.code_memory.retrieval.walk import USUAL_STEPS, Walker

WORK = PROJECT / ".local" / "benchmark-code-memory"
TENANT = "code"
ROUNDS = 40
WARM = 12
"""Questions asked first, to open connections and fill caches."""
EDITED = 10
NAMED = (
    "What controller serves route invoices.store and which model and table does it touch?",
    "Which migrations created or altered table invoices?",
    "What does PaymentController@store dispatch?",
)
PLAIN = (
    "who is told when a payment arrives",
    "how do invoices get their numbers",
    "what happens when a customer does not pay in time",
    "where are exchange rates taken from",
    "what may a guest of the company see",
    "which address is printed on an invoice",
    "who may void an invoice that was sent",
    "what becomes of a quote that a customer accepts",
    "how is tax added to a line",
    "when is a reminder sent again",
    "what is written down for the auditors",
    "who receives a webhook when something changes",
    "what happens if a webhook cannot be delivered",
    "how are expenses read from a file",
    "who may approve an expense",
    "where is the receipt of a payment made",
    "how is a plan charged every month",
    "what is kept of somebody who was invited",
    "which roles does a member have",
    "how is time turned into something to bill",
    "what does a credit note change",
    "which products belong to a category",
    "how are amounts of another currency converted",
    "what is exported to the ledger",
    "how is a document turned into a file to print",
    "who is a supplier and what is owed to them",
    "what is checked before a customer is stored",
    "how are comments attached to documents",
    "where can files be attached",
    "what does the dashboard add up",
    "how is a company chosen for a request",
    "which settings change how mail is sent",
    "what is deleted together with a customer",
    "how are tags put on records",
    "which requests need a signed in user",
    "what limits how often the interface may be asked",
    "how does the public link of an invoice work",
    "when is a yearly plan renewed",
    "what runs every night",
    "how are totals of an invoice computed",
)


def main() -> None:
    """Measure and save the result."""
    options = _parse_options()
    before = describe_machine()
    with benchmark_servers(WORK) as servers:
        root = make_installation(servers, WORK / "home", options.repository, options.copies)
        runs = {"cold": run_sync(), "noop": run_sync()}
        commit_edits(root)
        runs["commit of 10 files"] = run_sync()
        with Session() as session:
            counts = count_rows(session)
            walks = time_calls(
                lambda name: run_walk(session, name), ["invoices.store", "table:invoices"]
            )
            question_times = asyncio.run(time_questions(session))
    figures = {
        **counts,
        "seconds": runs,
        "walk of depth 5 in ms": walks,
        "questions": question_times,
    }
    print(json.dumps(figures, indent=1))
    report_result("code-memory", "code-memory", before, figures)


def make_installation(servers: Servers, home: Path, repository: Path, copies: int) -> Path:
    """Make an installation with one tenant, whose repository holds `copies` copies of a folder."""
    shutil.rmtree(home, ignore_errors=True)
    root = home / "repository"
    for number in range(copies):
        # Only the first copy has new names and texts.
        shutil.copytree(repository, root / (f"copy{number}" if number else "."), dirs_exist_ok=True)
    pygit2.init_repository(str(root), initial_head="main")
    commit_all(root)
    tenant = {
        "id": TENANT,
        "profile": "code-memory",
        "organization": "benchmark",
        "project": TENANT,
        "embedder": {"provider": "local"},
        "sources": [{"name": "repo", "type": "git", "root": str(root), "ref": "HEAD"}],
    }
    write_tenants_file(home, [tenant])
    servers.use_home(home, "code_memory")
    return root


def run_sync() -> float:
    """Sync, and return the seconds without interpreter startup."""
    command = [*CLI, "sync", TENANT, "--json"]
    process = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(json.loads(process.stdout)["seconds"])


def commit_edits(root: Path) -> None:
    """Append a comment to each of some files, and commit them."""
    edited = sorted(root.glob("app/**/*.php"))[:EDITED] or sorted(root.rglob("*.*"))[:EDITED]
    for path in edited:
        path.write_text(path.read_text() + "\n// edited\n")
    commit_all(root)


def commit_all(root: Path) -> None:
    """Commit all files of the worktree."""
    repository = pygit2.Repository(str(root))
    author = pygit2.Signature("Ada", "ada@example.org", 1_700_000_000, 0)
    repository.index.add_all()
    repository.index.write()
    parents = [] if repository.head_is_unborn else [repository.head.target]
    tree = repository.index.write_tree()
    repository.create_commit("HEAD", author, author, "benchmark", tree, parents)


def count_rows(session: Session) -> dict[str, int]:
    """Count documents, symbols and edges."""
    serving = session.catalog.generations.serving(TENANT)
    number = serving.number if serving is not None else 0
    relations = get_code_catalog(session.catalog).relation_rows.count_relations(TENANT, number)
    return {
        "documents": sum(1 for _ in session.catalog.documents.all(TENANT)),
        "symbols": get_code_catalog(session.catalog).relation_rows.count_symbols(TENANT, number),
        "edges": sum(edges for _, edges, _ in relations),
    }


def run_walk(session: Session, name: str) -> None:
    """Walk from a name, as deep as a question does."""
    walker = Walker(session.catalog)
    walker.walk_from_name(TENANT, Caller(), name, direction="out", depth=USUAL_STEPS)


def time_calls(work: Callable[[str], None], names: Sequence[str]) -> dict[str, float]:
    """Call `work` with the names in rotation; return percentiles in milliseconds."""
    spent = []
    for turn in range(ROUNDS):
        started = time.perf_counter()
        work(names[turn % len(names)])
        spent.append(1_000 * (time.perf_counter() - started))
    return compute_percentiles(spent[3:])  # the first ones load relations into memory


async def time_questions(session: Session) -> dict[str, Any]:
    """Time questions with and without the walk, in turns."""
    stores = (session.catalog, session.store, session.embedders)
    walking = AsyncRetriever(*stores, is_journaled=False)
    plain = AsyncRetriever(*stores, steps=StepLists(), is_journaled=False)
    try:
        names = [NAMED[turn % len(NAMED)] for turn in range(WARM + ROUNDS)]
        named = [await time_question(walking, name) for name in names]
        await compare_searches(walking, plain, PLAIN[:WARM])
        return {
            "named": compute_percentiles(named[WARM:]),
            "asked": await compare_searches(walking, plain, PLAIN[WARM:]),
            "asked again": await compare_searches(walking, plain, PLAIN[WARM:]),
        }
    finally:
        await walking.close()
        await plain.close()


async def compare_searches(
    walking: AsyncRetriever, plain: AsyncRetriever, questions: Sequence[str]
) -> dict[str, Any]:
    """Time questions that contain no symbol name, with and without the walk."""
    spent: dict[str, list[float]] = {"walk and search": [], "search alone": []}
    walks: list[float] = []
    for turn, question in enumerate(questions):

        async def walked_search(question: str = question) -> None:
            spent["walk and search"].append(await time_question(walking, question, walks))

        async def search(question: str = question) -> None:
            spent["search alone"].append(await time_question(plain, question))

        # The first search reads index pages that the second finds in memory.
        for ask in (walked_search, search) if turn % 2 else (search, walked_search):
            await ask()
    percentiles: dict[str, Any] = {
        name: compute_percentiles(values) for name, values in spent.items()
    }
    ratio = percentiles["walk and search"]["p50"] / percentiles["search alone"]["p50"]
    return {
        **percentiles,
        "walk within a search": compute_percentiles(walks),
        "ratio": round(ratio, 2),
    }


async def time_question(
    retriever: AsyncRetriever, query: str, walks: list[float] | None = None
) -> float:
    """Ask a question; return its milliseconds, and append those of the walk to `walks`."""
    started = time.perf_counter()
    answer = await retriever.search(TENANT, SearchRequest(query=query))
    if walks is not None and answer.debug is not None:
        walks.append(answer.debug.latency_ms.get("walk", 0.0))
    return 1_000 * (time.perf_counter() - started)


def compute_percentiles(spent: Sequence[float]) -> dict[str, float]:
    """Return the median and the 95th percentile."""
    ordered = sorted(spent)
    last = ordered[min(len(ordered) - 1, round(0.95 * len(ordered)))]
    return {"p50": round(statistics.median(ordered), 1), "p95": round(last, 1)}


def _parse_options() -> argparse.Namespace:
    parser = create_parser(__doc__)
    parser.add_argument("--repository", type=Path, default=PROJECT / "examples" / "laravel")
    parser.add_argument("--copies", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
