"""Put load from many callers on Elasticsearch itself, through its official client.

    python -m benchmarks.serving.bare_load URL FILE --client async --callers 50

The searches are the service's: in one request, built by the same functions, with vectors that were
computed beforehand. All candidates are returned with their texts, whereas the service reads the
texts of its hits alone, with another request. `--lean` requests no more candidates than hits, which
is enough without further look-ups.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from elastic_transport import OrjsonSerializer
from elasticsearch import AsyncElasticsearch, Elasticsearch

from benchmarks.serving.load import LoadOptions, LoadTimer, build_parser
from benchmarks.serving.questions import DrawnQuestions, read_questions
from rag_assets.search.recall import compute_candidate_count
from rag_assets.storage.index.elasticsearch import queries
from rag_assets.storage.index.model import EntryFilter, Owner, RankingRequest

_Lines = list[Mapping[str, Any]]
_OPTIONS: Mapping[str, Any] = {
    "request_timeout": 60,
    "serializers": {"application/json": OrjsonSerializer()},
}


class BareLoadOptions(LoadOptions):
    """Options of load on Elasticsearch."""

    client: str
    lean: bool


def build_lines(options: BareLoadOptions, questions: DrawnQuestions, number: int) -> _Lines:
    """Return the service's searches for a question, as lines of a multi-search."""
    limit = options.top_k if options.lean else compute_candidate_count(options.top_k)
    narrowing = EntryFilter(scopes=frozenset({"public"}))
    by: dict[str, np.ndarray | str] = {
        "knn": questions.vectors[number],
        "text": questions.queries[number],
    }
    kinds = ("knn", "text") if options.mode == "hybrid" else (options.mode,)
    target = questions.target
    owner = Owner(target.tenant, target.incarnation, target.generation)
    lines: _Lines = []
    for kind in kinds:
        body = queries.build_ranking_search(owner, RankingRequest(by[kind], limit, narrowing))
        lines += [
            {"index": target.index_name, "routing": target.tenant},
            {**queries.ENTRY_OPTIONS, **body},
        ]
    return lines


async def search_async(
    url: str, searches: list[_Lines], callers: int
) -> tuple[LoadTimer, list[int]]:
    """Search with one client on one event loop."""
    timed, hits, requests = LoadTimer(), [], iter(searches)
    async with AsyncElasticsearch(url, connections_per_node=callers, **_OPTIONS) as client:
        # Open the connections.
        await asyncio.gather(*(client.msearch(searches=searches[0]) for _ in range(callers)))

        async def call() -> None:
            for lines in requests:
                with timed.time_request():
                    answer = await client.msearch(searches=lines)
                hits.append(_count_hits(answer["responses"]))

        with timed.time_load():
            await asyncio.gather(*(call() for _ in range(callers)))
    return timed, hits


def search_in_threads(
    url: str, searches: list[_Lines], callers: int
) -> tuple[LoadTimer, list[int]]:
    """Search with one client and a thread for each caller."""
    timed, hits, requests = LoadTimer(), [], iter(searches)
    with (
        Elasticsearch(url, connections_per_node=callers, **_OPTIONS) as client,
        ThreadPoolExecutor(callers) as pool,
    ):
        _run_in_threads(pool, lambda: client.msearch(searches=searches[0]), callers)

        def call() -> None:
            for lines in requests:
                with timed.time_request():
                    answer = client.msearch(searches=lines)
                hits.append(_count_hits(answer["responses"]))

        with timed.time_load():
            _run_in_threads(pool, call, callers)
    return timed, hits


def _run_in_threads(pool: ThreadPoolExecutor, call: Callable[[], object], times: int) -> None:
    for future in [pool.submit(call) for _ in range(times)]:
        future.result()


def _count_hits(responses: list[Mapping[str, Any]]) -> int:
    return sum(len(response["hits"]["hits"]) for response in responses)


def main() -> None:
    """Send the searches, and report their times."""
    arguments = build_parser(__doc__)
    arguments.add_argument("--client", choices=("async", "threads"), default="async")
    arguments.add_argument(
        "--lean", action="store_true", help="request no more candidates than hits"
    )
    options = arguments.parse_args(namespace=BareLoadOptions())
    questions = read_questions(options.questions)
    searches = [
        build_lines(options, questions, number)
        for number in options.choose_questions(len(questions.queries))
    ]
    # The URL holds a password, and every user of the machine can read arguments.
    url = os.environ["RAG_ASSETS_ELASTICSEARCH_URL"]
    if options.client == "async":
        timed, hits = asyncio.run(search_async(url, searches, options.callers))
    else:
        timed, hits = search_in_threads(url, searches, options.callers)
    timed.print_report(hits)


if __name__ == "__main__":
    main()
