"""Many callers that ask Elasticsearch itself through its official client.

    python -m benchmarks.serving.bare_load URL FILE --client async --callers 50

What is asked is what the service asks: the same searches in one request, made by the same
functions, with vectors that were computed beforehand. All candidates bring their texts along: the
service asks for those of its hits alone, but with one request more. `--lean` asks for no more
candidates than are to be shown, as one would who does not look anything up afterwards.
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

from benchmarks.serving.load import Asked, Timed, parser
from benchmarks.serving.questions import Drawn, read
from rag_assets.retrieval.steps.recall import candidate_count
from rag_assets.storage.index.elasticsearch import queries
from rag_assets.storage.index.model import EntryFilter, Owner, RankingRequest

_Lines = list[Mapping[str, Any]]
_OPTIONS: Mapping[str, Any] = {
    "request_timeout": 60,
    "serializers": {"application/json": OrjsonSerializer()},
}


class AskedBare(Asked):
    """What is asked, and how."""

    client: str
    lean: bool


def lines_of(asked: AskedBare, drawn: Drawn, number: int) -> _Lines:
    """A question as the service puts it to Elasticsearch."""
    limit = asked.top_k if asked.lean else candidate_count(asked.top_k)
    narrowing = EntryFilter(scopes=frozenset({"public"}))
    by: dict[str, np.ndarray | str] = {
        "knn": drawn.vectors[number],
        "text": drawn.queries[number],
    }
    kinds = ("knn", "text") if asked.mode == "hybrid" else (asked.mode,)
    place = drawn.place
    owner = Owner(place.tenant, place.incarnation, place.generation)
    found: _Lines = []
    for kind in kinds:
        body = queries.ranking(owner, RankingRequest(by[kind], limit, narrowing))
        found += [
            {"index": place.index_name, "routing": place.tenant},
            {**queries.READING, **body},
        ]
    return found


async def ask(url: str, asked: list[_Lines], callers: int) -> tuple[Timed, list[int]]:
    """Ask with one client on one event loop."""
    timed, hits, requests = Timed(), [], iter(asked)
    async with AsyncElasticsearch(url, connections_per_node=callers, **_OPTIONS) as client:
        # Opens the connections.
        await asyncio.gather(*(client.msearch(searches=asked[0]) for _ in range(callers)))

        async def call() -> None:
            for lines in requests:
                with timed.one():
                    answer = await client.msearch(searches=lines)
                hits.append(_hits(answer["responses"]))

        with timed.all():
            await asyncio.gather(*(call() for _ in range(callers)))
    return timed, hits


def ask_in_threads(url: str, asked: list[_Lines], callers: int) -> tuple[Timed, list[int]]:
    """Ask with one client and a thread for each caller."""
    timed, hits, requests = Timed(), [], iter(asked)
    with (
        Elasticsearch(url, connections_per_node=callers, **_OPTIONS) as client,
        ThreadPoolExecutor(callers) as pool,
    ):
        _wait(pool, lambda: client.msearch(searches=asked[0]), callers)

        def call() -> None:
            for lines in requests:
                with timed.one():
                    answer = client.msearch(searches=lines)
                hits.append(_hits(answer["responses"]))

        with timed.all():
            _wait(pool, call, callers)
    return timed, hits


def _wait(pool: ThreadPoolExecutor, call: Callable[[], object], times: int) -> None:
    for future in [pool.submit(call) for _ in range(times)]:
        future.result()


def _hits(responses: list[Mapping[str, Any]]) -> int:
    return sum(len(response["hits"]["hits"]) for response in responses)


def main() -> None:
    """Send a request, and report its time."""
    options = parser(__doc__)
    options.add_argument("--client", choices=("async", "threads"), default="async")
    options.add_argument("--lean", action="store_true", help="no more candidates than hits")
    asked = options.parse_args(namespace=AskedBare())
    drawn = read(asked.questions)
    made = [lines_of(asked, drawn, number) for number in asked.chosen(len(drawn.queries))]
    # Not from the arguments, which everybody on the machine can read: it holds a password.
    url = os.environ["ELASTICSEARCH_URL"]
    if asked.client == "async":
        timed, hits = asyncio.run(ask(url, made, asked.callers))
    else:
        timed, hits = ask_in_threads(url, made, asked.callers)
    timed.report(hits)


if __name__ == "__main__":
    main()
