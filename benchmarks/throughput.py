"""Measure texts per second through OpenAI's SDK, against the limit that a server's latency sets.

    python -m benchmarks.throughput                    about five minutes
    python -m benchmarks.throughput --rounds 1 --name trial --skip limits local

The server is a separate process that answers every request after 200 ms (latency_server.py).
Vectors are written into a lake, as by a sync. With c concurrent requests of 100 texts no client can
exceed 500 c texts per second; any shortfall is the project's. Then a limit of requests per minute:
how many the server received in any minute, and how long two minutes' worth and one more request
took. Finally the local model, against onnxruntime called directly (embedding.py).
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from pydantic import SecretStr

from benchmarks.embedding import compare_speeds, make_texts
from benchmarks.latency_server import TEXTS
from benchmarks.measure import PROJECT, create_parser, describe_machine, read_load, save_result
from rag_assets.common.hashing import sha256_hex
from rag_assets.common.private_endpoints import PrivateEndpoints
from rag_assets.models.config import EmbedderConfig
from rag_assets.models.embedding.batches import EmbedItem
from rag_assets.models.embedding.bulk import embed_all
from rag_assets.models.embedding.protocol import Embedder, Vectors
from rag_assets.models.factory import build_embedder
from rag_assets.models.onnx import count_cores
from rag_assets.storage.lake.store import Lake

MILLISECONDS = 200
DIMENSIONS = (512, 1536)
CONCURRENCY = (1, 8, 32)
SECONDS = 6
"""Least duration of a round."""
A_MINUTE = 30
"""Limit of requests per minute."""
WORDS = 180


@contextmanager
def run_latency_server(dimensions: int) -> Iterator[int]:
    """Run a server in a process of its own; yield its port."""
    command = [sys.executable, "-m", "benchmarks.latency_server"]
    options = ["--milliseconds", str(MILLISECONDS), "--dimensions", str(dimensions)]
    with subprocess.Popen(
        [*command, *options],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        if process.stdout is None:
            sys.exit("the server's output, which has its port, is not captured")
        yield int(process.stdout.readline())
        process.communicate()


class Sender:
    """Embeds texts as a sync does, into a temporary lake.

    Args:
        port: port of the server.
        texts: texts to send, over and over.
        options: fields of the tenant's embedder, named as in tenants.yaml.
    """

    def __init__(self, port: int, texts: Sequence[str], **options: int) -> None:
        self._port = port
        self._texts = texts
        self._options = options

    def time_requests(self, requests: int) -> float:
        """Send requests of TEXTS texts each; return the seconds, without imports and connecting."""
        with tempfile.TemporaryDirectory() as folder:
            lake = Lake(folder).tenant("bench", 1)
            embedder = self._build_embedder()

            def keep(keys: Sequence[str], vectors: Vectors) -> None:
                lake.append_vectors(embedder.embedder_id, keys, vectors)

            items = [
                EmbedItem(sha256_hex(str(n)), self._texts[n % len(self._texts)])
                for n in range(requests * TEXTS)
            ]
            started = time.perf_counter()
            outcome = asyncio.run(
                embed_all(embedder, items, keep=keep, flush_items=2_000, flush_seconds=0.1)
            )
            seconds = time.perf_counter() - started
        if outcome.embedded != len(items) or outcome.retries:
            sys.exit(
                f"only {outcome.embedded} of {len(items)} texts embedded, {outcome.retries} retries"
            )
        return seconds

    def _build_embedder(self) -> Embedder:
        config = EmbedderConfig(
            provider="openai", base_url=f"http://127.0.0.1:{self._port}/v1", **self._options
        )
        allowed = PrivateEndpoints.parse(f"127.0.0.1:{self._port}")
        return build_embedder(config, credentials=lambda: SecretStr("none"), network=allowed)


def measure_concurrency(
    port: int, dimensions: int, texts: Sequence[str], rounds: int
) -> list[dict[str, Any]]:
    """Return texts per second by concurrency; the concurrencies take turns."""
    # The first request imports the modules that are imported lazily.
    Sender(port, texts, dimensions=dimensions).time_requests(1)
    rates_by_concurrency: dict[int, list[float]] = {concurrency: [] for concurrency in CONCURRENCY}
    for _ in range(rounds):
        for concurrency, rates in rates_by_concurrency.items():
            requests = round(concurrency * SECONDS * 1000 / MILLISECONDS)
            options = {"concurrency": concurrency, "dimensions": dimensions}
            seconds = Sender(port, texts, **options).time_requests(requests)
            rates.append(requests * TEXTS / seconds)
    return [
        {
            "dimensions": dimensions,
            "concurrency": concurrency,
            "possible_per_second": possible,
            "texts_per_second": [round(rate, 1) for rate in rates],
            "ratio": round(statistics.median(rates) / possible, 3),
        }
        for concurrency, rates in rates_by_concurrency.items()
        if (possible := concurrency * TEXTS * 1000 / MILLISECONDS)
    ]


def measure_limit(port: int, texts: Sequence[str]) -> dict[str, Any]:
    """Send two minutes' worth of requests and one more, under a limit of requests per minute."""
    before = len(read_arrivals(port))
    requests = 2 * A_MINUTE + 1
    options = {"dimensions": DIMENSIONS[0], "requests_per_minute": A_MINUTE}
    seconds = Sender(port, texts, **options).time_requests(requests)
    arrival_times = read_arrivals(port)[before:]
    most = max(
        sum(first <= other < first + 60 for other in arrival_times) for first in arrival_times
    )
    return {
        "requests_per_minute": A_MINUTE,
        "requests": requests,
        "seconds": round(seconds, 2),
        "possible_seconds": 120.0,
        "most_in_a_minute": most,
    }


def read_arrivals(port: int) -> list[float]:
    """Return when the server received each request so far."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/arrivals") as answer:
        return list(json.load(answer))


def measure_local(rounds: int) -> list[dict[str, Any]]:
    """Measure the local model by length of text."""
    threads = count_cores()
    return [
        {
            "words": words,
            "threads": threads,
            **compare_speeds(make_texts(200, words), threads, rounds),
        }
        for words in (16, 220)
    ]


def main() -> None:
    """Measure and save the result."""
    parser = create_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--skip", nargs="*", choices=["limits", "local"], default=[])
    parser.add_argument("--name", default="throughput")
    arguments = parser.parse_args()
    result: dict[str, Any] = {
        "machine": describe_machine(),
        "taken": datetime.now(UTC).strftime("%Y-%m-%d"),
        "rounds": arguments.rounds,
        "milliseconds": MILLISECONDS,
        "texts_a_request": TEXTS,
        "concurrent": [],
    }
    texts = make_texts(500, WORDS)
    for dimensions in DIMENSIONS:
        with run_latency_server(dimensions) as port:
            result["concurrent"] += measure_concurrency(port, dimensions, texts, arguments.rounds)
    if "limits" not in arguments.skip:
        with run_latency_server(DIMENSIONS[0]) as port:
            result["limited"] = measure_limit(port, texts)
    if "local" not in arguments.skip:
        result["local"] = measure_local(arguments.rounds)
    result["load_average_after"] = read_load()
    print(json.dumps({name: value for name, value in result.items() if name != "machine"}))
    print(save_result(arguments.name, result))


if __name__ == "__main__":
    main()
