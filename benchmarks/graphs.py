"""Measure building and searching vector indexes: by index type, by size, and with merging.

    python -m benchmarks.graphs                                  every case, 20,000 and 160,000
    python -m benchmarks.graphs --sizes 1000000 --cases int8_hnsw bbq_hnsw --keep
    python -m benchmarks.graphs --sizes 20000 --cases bbq_hnsw --name trial

Entries have few words, so that vectors dominate the cost. They are written and searched as the
project does: batches of 4,000 with a refresh after each, bulk requests of 500, the filters,
candidates and options of its searches. Another tenant with 2,000 entries shares the index. Numpy
computes exact neighbours from all vectors.
"""

from __future__ import annotations

import asyncio
import json
import math
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from statistics import quantiles
from typing import Any, get_args

import numpy as np
from elasticsearch import ApiError, Elasticsearch
from elasticsearch.helpers import pack_dense_vector

from benchmarks.clustered import PASSAGES, Clusters, Vectors
from benchmarks.measure import (
    PROJECT,
    RESULTS,
    Meter,
    create_parser,
    describe_machine,
    read_load,
    read_memory,
    read_tree_cpu,
    save_result,
)
from rag_assets.common.errors import IndexInconsistent
from rag_assets.common.hashing import sha256_hex
from rag_assets.ingest.chunking.model import Chunk
from rag_assets.runtime.elasticsearch import EmbeddedElasticsearch
from rag_assets.search.recall import compute_candidate_count
from rag_assets.storage.index.elasticsearch.entries import bulk
from rag_assets.storage.index.elasticsearch.mapping import build_index_body, build_write_alias
from rag_assets.storage.index.elasticsearch.queries import build_upsert_action
from rag_assets.storage.index.elasticsearch.store import ElasticsearchSearcher
from rag_assets.storage.index.model import (
    Entry,
    EntryDocument,
    IndexSpec,
    Owner,
    RankingRequest,
    VectorIndex,
    entry_id,
)

WORK = PROJECT / ".local" / "benchmark-graphs"
SIZES = (20_000, 160_000)
DIMENSIONS = 384
QUESTIONS = 300
TOP = 10

_INDEX = "graphs"
_SMALL_ENTRIES = 2_000
_TIMEOUT = 600
_LARGE_OWNER = Owner("large", 1, 1, b"k" * 32)
_SMALL_OWNER = Owner("small", 1, 1, b"k" * 32)
_MADE = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class IndexCase:
    """A configuration of the index.

    Attributes:
        kind: type of the vector index.
        flat_to: largest segment, in vectors, without a graph; None for the project's setting.
        options: index options that override the project's.
        importing: settings that apply only while entries are written.
        merged: whether all segments are merged into one at the end.
    """

    kind: str
    flat_to: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    importing: Mapping[str, Any] = field(default_factory=dict)
    merged: bool = False

    def build_body(self) -> dict[str, Any]:
        """Return the settings and mapping of the index."""
        # A type that the project does not use gets the options of a similar type.
        alike: VectorIndex = next(
            (kind for kind in get_args(VectorIndex) if kind == self.kind), "bbq_hnsw"
        )
        body = build_index_body(IndexSpec(DIMENSIONS, alike))
        options = body["mappings"]["properties"]["vector"]["index_options"]
        options["type"] = self.kind
        if self.flat_to is not None:
            options["flat_index_threshold"] = round(self.flat_to / math.log(self.flat_to))
        options |= self.options
        return body


CASES = {
    "int8_hnsw": IndexCase("int8_hnsw"),
    "int8_hnsw, flat to 80,000": IndexCase("int8_hnsw", flat_to=80_000),
    "int8_hnsw, merged at the end": IndexCase(
        "int8_hnsw", importing={"index.merge.policy.max_merged_segment": "25mb"}, merged=True
    ),
    "hnsw": IndexCase("hnsw"),
    "bbq_hnsw": IndexCase("bbq_hnsw"),
    "bbq_hnsw, graphs above 20,000, oversampled twice": IndexCase(
        "bbq_hnsw", flat_to=20_833, options={"rescore_vector": {"oversample": 2}}
    ),
    "bbq_disk": IndexCase("bbq_disk"),
}
"""The compared configurations, by name."""


class GraphCorpus:
    """Entries by number, and the exact neighbours of questions.

    Args:
        count: number of entries of the large tenant.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._clusters = Clusters(DIMENSIONS)
        self._others = Clusters(DIMENSIONS, seed=5)

    def build_batches(self) -> Iterator[list[dict[str, Any]]]:
        """Yield the actions that write the large tenant's entries, in the batches of a sync."""
        for numbers in self._clusters.split_batches(self.count):
            yield _build_actions(_LARGE_OWNER, numbers, self._clusters.vectors(numbers))

    def build_small_actions(self) -> list[dict[str, Any]]:
        """Return the actions that write the small tenant's entries."""
        numbers = range(_SMALL_ENTRIES)
        return _build_actions(_SMALL_OWNER, numbers, self._others.vectors(numbers))

    @cached_property
    def questions(self) -> Vectors:
        """Return the question vectors for the large tenant."""
        return self._clusters.draw_questions(QUESTIONS, self.count)

    @cached_property
    def small_questions(self) -> Vectors:
        """Return the question vectors for the small tenant."""
        return self._others.draw_questions(QUESTIONS, _SMALL_ENTRIES)

    @cached_property
    def nearest_ids(self) -> list[set[str]]:
        """Return the ids of the entries nearest to each question, by exhaustive comparison."""
        best = np.full((QUESTIONS, TOP), -1.0, dtype=np.float32)
        numbers_of_best = np.zeros((QUESTIONS, TOP), dtype=np.int64)
        for numbers in self._clusters.split_batches(self.count):
            cosines = self.questions @ self._clusters.vectors(numbers).T
            all_cosines = np.hstack([best, cosines])
            positions = np.argpartition(-all_cosines, TOP, axis=1)[:, :TOP]
            batch_numbers = np.broadcast_to(np.asarray(numbers), cosines.shape)
            numbers_of_best = np.take_along_axis(
                np.hstack([numbers_of_best, batch_numbers]), positions, axis=1
            )
            best = np.take_along_axis(all_cosines, positions, axis=1)
        return [
            {entry_id(_LARGE_OWNER, *_split_number(int(n))) for n in row} for row in numbers_of_best
        ]

    @cached_property
    def small_nearest_ids(self) -> list[set[str]]:
        """Return the ids of the small tenant's entries nearest to each of its questions."""
        vectors = self._others.vectors(range(_SMALL_ENTRIES))
        order = np.argsort(-(self.small_questions @ vectors.T), axis=1)[:, :TOP]
        return [{entry_id(_SMALL_OWNER, *_split_number(int(n))) for n in row} for row in order]


def _build_actions(owner: Owner, numbers: range, vectors: Vectors) -> list[dict[str, Any]]:
    """Build bulk actions as the project does, except that all digests are the same."""
    document = EntryDocument(
        document_id="",
        indexed_key="",
        source="files",
        source_type="files",
        path="document.md",
        uri="files/document.md",
        media_type="text/markdown",
        title="A document",
        access_scope="everyone",
        modified_at=_MADE,
        language="en",
    )
    chunk = Chunk(0, "A passage of a document.", 0, 24, 0, (), 5, sha256_hex("passage"))
    alike = build_upsert_action(_INDEX, Entry(owner, document, chunk, vectors[0]))
    actions = []
    for number, vector in zip(numbers, vectors, strict=True):
        document_id, index_key, ordinal = _split_number(number)
        changed = {
            "document_id": document_id,
            "index_key": index_key,
            "ordinal": ordinal,
            "vector": pack_dense_vector(vector),
        }
        id_ = sha256_hex(f"{owner.tenant} {number}")
        actions.append({**alike, "_id": id_, "_source": {**alike["_source"], **changed}})
    return actions


def _split_number(number: int) -> tuple[str, str, int]:
    """Return the document, its version and the ordinal of an entry."""
    document_id = f"{number // PASSAGES:032x}"
    return document_id, sha256_hex(document_id), number % PASSAGES


class CaseRunner:
    """Measures cases on a server.

    Args:
        url: address of the server.
        pid: process id of the server.
        log: file for the output of commands.
    """

    def __init__(self, url: str, pid: int, log: Path) -> None:
        self._url, self._pid = url, pid
        self._client = Elasticsearch(url, request_timeout=_TIMEOUT)
        self._meter = Meter({"elasticsearch": pid}, {}, log)

    def close(self) -> None:
        """Remove the index, and close the connection."""
        self._drop_index()
        self._client.close()

    def measure_case(self, name: str, case: IndexCase, corpus: GraphCorpus) -> dict[str, Any]:
        """Measure a case; if the server refuses its index type, return the reason instead."""
        self._drop_index()
        row: dict[str, Any] = {"case": name, "entries": corpus.count, "load": read_load()[0]}
        try:
            aliases: dict[str, Any] = {build_write_alias(_INDEX): {}}
            self._client.indices.create(index=_INDEX, aliases=aliases, **case.build_body())
            return row | self._build(case, corpus) | self._read_state() | self._search(corpus)
        except (ApiError, IndexInconsistent) as error:
            return row | {"refused": self._read_refusal() or str(error)}

    def _build(self, case: IndexCase, corpus: GraphCorpus) -> dict[str, float]:
        self._apply_settings(case.importing)
        self._write(corpus.build_small_actions())
        self._wait_until_merged()
        writing, before = 0.0, read_tree_cpu(self._pid)
        for batch in corpus.build_batches():
            started = time.perf_counter()
            self._write(batch)
            writing += time.perf_counter() - started
        written, ended = read_tree_cpu(self._pid) - before, time.perf_counter()
        self._apply_settings(dict.fromkeys(case.importing))
        if case.merged:
            self._client.indices.forcemerge(index=_INDEX, max_num_segments=1)
        self._wait_until_merged()
        return {
            "writing": writing,
            "settling": time.perf_counter() - ended,
            "cpu_writing": written,
            "cpu": read_tree_cpu(self._pid) - before,
        }

    def _read_state(self) -> dict[str, Any]:
        self._client.indices.flush(index=_INDEX)
        stats = self._client.indices.stats(index=_INDEX)["indices"][_INDEX]["primaries"]
        shards = self._client.indices.segments(index=_INDEX)["indices"][_INDEX]["shards"]
        sizes = [
            segment["num_docs"]
            for [shard] in shards.values()
            for segment in shard["segments"].values()
        ]
        [node] = self._client.nodes.stats(metric="jvm")["nodes"].values()
        return {
            "megabytes": stats["store"]["size_in_bytes"] / 1e6,
            "off_heap": stats["dense_vector"].get("off_heap", {}),
            "merges": stats["merges"]["total"],
            "merged_documents": stats["merges"]["total_docs"],
            "heap_mb": node["jvm"]["mem"]["heap_used_in_bytes"] / 1e6,
            "process_mb": read_memory(self._pid) / 1e6,
            "segments": len(sizes),
            "largest_segment": max(sizes),
        }

    def _search(self, corpus: GraphCorpus) -> dict[str, Any]:
        large = self._measure_search(_LARGE_OWNER, corpus.questions, corpus.nearest_ids)
        other = self._measure_search(_SMALL_OWNER, corpus.small_questions, corpus.small_nearest_ids)
        return large | {f"neighbour_{name}": value for name, value in other.items()}

    def _measure_search(
        self, owner: Owner, questions: Vectors, nearest: list[set[str]]
    ) -> dict[str, float]:
        asyncio.run(
            self._run_searches(owner, questions[:100])
        )  # compiles, and fills the page cache
        before = read_tree_cpu(self._pid)
        answers, times = asyncio.run(self._run_searches(owner, questions))
        spent = read_tree_cpu(self._pid) - before
        right = sum(len(ids & exact) for ids, exact in zip(answers, nearest, strict=True))
        percentiles = quantiles(times, n=20)
        return {
            "recall": right / (TOP * len(nearest)),
            "p50": percentiles[9],
            "p95": percentiles[18],
            "cpu_search": spent / len(questions),
        }

    async def _run_searches(
        self, owner: Owner, questions: Vectors
    ) -> tuple[list[set[str]], list[float]]:
        """Search each question; return the first ids and the seconds of each answer."""
        answers, times = [], []
        searcher = ElasticsearchSearcher(self._url)
        for question in questions:
            request = RankingRequest(question, compute_candidate_count(5))
            started = time.perf_counter()
            [candidates] = await searcher.rankings(_INDEX, owner, [request])
            times.append(time.perf_counter() - started)
            answers.append({candidate.id for candidate in candidates[:TOP]})
        await searcher.close()
        return answers, times

    def _read_refusal(self) -> str | None:
        """Return the server's reason for refusing a vector."""
        try:
            self._client.index(index=_INDEX, routing="large", document={"vector": [1.0] * 384})
        except ApiError as error:
            return str(error.body["error"]["reason"])
        return None

    def _wait_until_merged(self) -> None:
        """Wait until no merge is running."""
        while True:
            self._meter.settle()
            stats = self._client.indices.stats(index=_INDEX, metric="merge")
            if not stats["_all"]["primaries"]["merges"]["current"]:
                return

    def _write(self, actions: list[dict[str, Any]]) -> None:
        bulk(self._client, actions, make_writable=lambda name: False)
        self._client.indices.refresh(index=_INDEX)

    def _apply_settings(self, settings: Mapping[str, Any]) -> None:
        if settings:
            self._client.indices.put_settings(index=_INDEX, settings=dict(settings))

    def _drop_index(self) -> None:
        self._client.indices.delete(index=_INDEX, ignore_unavailable=True)


def main() -> None:
    """Measure, and save the result after each case."""
    parser = create_parser(__doc__, name="graphs", work=WORK)
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--keep", action="store_true", help="add to the existing results")
    arguments = parser.parse_args()
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    path = RESULTS / f"{arguments.name}.json"
    if arguments.keep and path.exists():
        rows = {(row["case"], row["entries"]): row for row in json.loads(path.read_text())["rows"]}
    result = {
        "benchmark": "graphs",
        "taken": datetime.now(UTC).strftime("%Y-%m-%d"),
        "rounds": 1,
        "dimensions": DIMENSIONS,
        "machine": describe_machine(),
    }
    server = EmbeddedElasticsearch(arguments.work)
    try:
        url = server.start()
        record = server.process.find()
        if record is None:
            sys.exit("Elasticsearch ended")
        runner = CaseRunner(url, record.pid, arguments.work / "commands.log")
        for kind in ("int8_hnsw", "bbq_hnsw"):  # compiles what every case needs
            runner.measure_case("warm-up", CASES[kind], GraphCorpus(_SMALL_ENTRIES * 8))
        for size in arguments.sizes:
            corpus = GraphCorpus(size)
            for name in arguments.cases:
                rows[name, size] = runner.measure_case(name, CASES[name], corpus)
                print(json.dumps(rows[name, size]), flush=True)
                ordered = sorted(rows.values(), key=_get_sort_key)
                save_result(arguments.name, json.loads(json.dumps(result | {"rows": ordered})))
        runner.close()
    finally:
        server.stop()


def _get_sort_key(row: Mapping[str, Any]) -> tuple[int, int]:
    return row["entries"], list(CASES).index(row["case"])


if __name__ == "__main__":
    main()
