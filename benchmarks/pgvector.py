"""Compare pgvector with Elasticsearch: recall against exact search, and latency.

    python -m benchmarks.pgvector          20,000 sentences by the shipped model; 3,072 dimensions
    python -m benchmarks.pgvector --count 2000 --name trial
    python -m benchmarks.pgvector --step prepare     then --step measure, on a quiet machine

Both stores are filled and searched by the project's adapters, with filters that select 1 %, 10 %
and all entries. Numpy computes exact neighbours.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median, quantiles
from typing import Any

import numpy as np

from benchmarks.clustered import Clusters, Vectors
from benchmarks.measure import PROJECT, create_parser, describe_machine, read_load, save_result
from benchmarks.prose import draw_sentence
from benchmarks.servers import Servers, benchmark_servers
from rag_assets.common.hashing import sha256_hex
from rag_assets.ingest.chunking.model import Chunk
from rag_assets.models.embedding.local import OnnxEmbedder
from rag_assets.storage.index.model import (
    Entry,
    EntryDocument,
    EntryFilter,
    IndexSpec,
    Owner,
    RankingRequest,
    choose_vector_index,
)
from rag_assets.storage.index.pgvector.tables import PgVectors
from rag_assets.storage.index.store import EntrySearcher, StoreConfig, VectorStore, open_store

WORK = PROJECT / ".local" / "benchmark-pgvector"
TOP = 10
CANDIDATES = 46
"""Candidates that a search for eight hits requests."""
QUESTIONS = 200
FILES = ("vectors", "questions")
_FOLDERS = (WORK / "sentences", WORK / "long")
SHARES = {"1 %": "one", "10 %": "ten", "all": None}
_MADE = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class VectorCorpus:
    """Vectors and questions.

    Attributes:
        vectors: unit vectors of shape (entries, dimensions).
        questions: unit vectors of shape (questions, dimensions).
    """

    name: str
    vectors: Vectors
    questions: Vectors

    @property
    def owner(self) -> Owner:
        """Return the owner of the entries."""
        return Owner(f"pgvector-{self.vectors.shape[1]}", 1, 1, b"k" * 32)

    def build_tags(self, number: int) -> tuple[str, ...]:
        """Return the tags of one entry, by which filters select it."""
        return (*(["one"] if number % 100 == 0 else []), *(["ten"] if number % 10 == 3 else []))

    def build_entries(self) -> Iterator[Entry]:
        """Yield the entries to write."""
        for number, vector in enumerate(self.vectors):
            text = f"entry {number}"
            document = EntryDocument(
                document_id=f"{number:08x}",
                indexed_key="v1",
                source="s",
                source_type="file",
                path=f"{number}.md",
                uri=f"s/{number}.md",
                media_type="text/markdown",
                title=None,
                access_scope="public",
                modified_at=_MADE,
                tags=self.build_tags(number),
            )
            chunk = Chunk(0, text, 0, len(text), 0, (), 3, sha256_hex(text))
            yield Entry(self.owner, document, chunk, vector)

    def find_nearest(self, tag: str | None) -> list[set[str]]:
        """Return the ids of the documents nearest to each question, by exhaustive comparison."""
        numbers = np.array(
            [n for n in range(len(self.vectors)) if tag is None or tag in self.build_tags(n)]
        )
        scores = self.questions @ self.vectors[numbers].T
        best = np.argsort(-scores, axis=1)[:, :TOP]
        return [{f"{numbers[one]:08x}" for one in row} for row in best]


def build_sentences(count: int) -> VectorCorpus:
    """Embed sentences with the shipped model; the questions are further sentences."""
    rng = random.Random(7)
    texts = list(dict.fromkeys(draw_sentence(rng) for _ in range(2 * count)))[: count + QUESTIONS]
    embedder = OnnxEmbedder()
    vectors = asyncio.run(_embed(embedder, texts))
    return VectorCorpus(embedder.embedder_id, vectors[:-QUESTIONS], vectors[-QUESTIONS:])


async def _embed(embedder: OnnxEmbedder, texts: Sequence[str]) -> Vectors:
    answer = await embedder.embed(texts)
    await embedder.close()
    return np.stack([np.asarray(vector, dtype=np.float32) for vector in answer.vectors])


def build_long_vectors(count: int) -> VectorCorpus:
    """Return text-like vectors of 3,072 dimensions, which are indexed in half precision."""
    clusters = Clusters(dimensions=3_072)
    vectors = np.concatenate(
        [clusters.vectors(numbers) for numbers in clusters.split_batches(count)]
    )
    return VectorCorpus("clusters of 3,072", vectors, clusters.draw_questions(QUESTIONS, count))


def write_corpus(corpus: VectorCorpus, store: VectorStore) -> dict[str, Any]:
    """Write the corpus into both stores; return its name, its index and the seconds."""
    vectors, owner, dimensions = _require_vectors(store), corpus.owner, corpus.vectors.shape[1]
    index = store.indexes.place(
        IndexSpec(dimensions, choose_vector_index(dimensions)), "any", "shared"
    )
    times = {
        "Elasticsearch": _time_call(lambda: store.entries.write(index.name, corpus.build_entries()))
    }
    vectors.create(owner, dimensions)
    times["pgvector"] = _time_call(lambda: vectors.write(corpus.build_entries()))
    times["pgvector, its graph"] = _time_call(lambda: vectors.index(owner, dimensions))
    return {"name": corpus.name, "index": index.name, "written in seconds": times}


def measure_corpus(corpus: VectorCorpus, store: VectorStore, index_name: str) -> dict[str, Any]:
    """Return recall and latency of both stores."""
    owner, figures = corpus.owner, {}
    pgvector_owner = Owner(owner.tenant, 1, 1, owner.digest_key, vectors_beside=True)
    for share, tag in SHARES.items():
        for name, searched_owner in (("Elasticsearch", owner), ("pgvector", pgvector_owner)):
            answer = asyncio.run(
                _measure_search(store.searcher(), index_name, searched_owner, corpus, tag)
            )
            figures[f"{name}, {share}"] = answer
    return figures


def _require_vectors(store: VectorStore) -> PgVectors:
    if store.vectors is None:
        raise SystemExit("the vector store has no Postgres")
    return store.vectors


async def _measure_search(
    searcher: EntrySearcher, index_name: str, owner: Owner, corpus: VectorCorpus, tag: str | None
) -> dict[str, float]:
    exact = corpus.find_nearest(tag)
    entry_filter = EntryFilter(frozenset({"public"}), tags=(tag,) if tag else ())
    times, hits, short = [], [], 0
    for question, best in zip(corpus.questions, exact, strict=True):
        request = RankingRequest(question, CANDIDATES, entry_filter)
        started = time.perf_counter()
        [ranking] = await searcher.rankings(index_name, owner, [request])
        times.append(1_000 * (time.perf_counter() - started))
        hits.append(len(best & {candidate.document_id for candidate in ranking[:TOP]}) / TOP)
        short += len(ranking) < CANDIDATES
    await searcher.close()
    return {
        f"recall@{TOP}": round(sum(hits) / len(hits), 4),
        "p50 ms": round(median(times), 2),
        "p95 ms": round(quantiles(times, n=20)[-1], 2),
        "short": short,
    }


def _time_call(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return round(time.perf_counter() - started, 1)


def main() -> None:
    """Prepare, measure, and save the result."""
    parser = create_parser(__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--name", default="pgvector")
    parser.add_argument("--step", choices=["prepare", "measure"], help="run only this step")
    arguments = parser.parse_args()
    prepares, measures = arguments.step != "measure", arguments.step != "prepare"
    with benchmark_servers(WORK, fresh=prepares) as servers:
        store = _open_store(servers, fresh=prepares)
        if prepares:
            prepare_corpora(store, arguments.count)
        if measures:
            print(save_result(arguments.name, measure_prepared(store)))


def prepare_corpora(store: VectorStore, count: int) -> None:
    """Make the vectors, write them into both stores, and save them in files."""
    for folder, build in zip(_FOLDERS, (build_sentences, build_long_vectors), strict=True):
        corpus = build(count)
        facts = write_corpus(corpus, store)
        folder.mkdir(parents=True, exist_ok=True)
        for name in FILES:
            np.save(folder / f"{name}.npy", getattr(corpus, name))
        (folder / "prepared.json").write_text(json.dumps(facts))


def measure_prepared(store: VectorStore) -> dict[str, Any]:
    """Measure the prepared corpora."""
    before, result = describe_machine(), {}
    for folder in _FOLDERS:
        prepared = json.loads((folder / "prepared.json").read_text())
        arrays = [np.load(folder / f"{name}.npy") for name in FILES]
        corpus = VectorCorpus(prepared["name"], *arrays)
        figures = measure_corpus(corpus, store, prepared["index"])
        result[corpus.name] = {"written in seconds": prepared["written in seconds"], **figures}
    return {
        "benchmark": "pgvector",
        "taken": datetime.now(UTC).strftime("%Y-%m-%d"),
        "rounds": 1,
        "entries": len(corpus.vectors),
        "candidates": CANDIDATES,
        "corpora": result,
        "machine": before,
        "load_average_after": read_load(),
    }


def _open_store(servers: Servers, *, fresh: bool) -> VectorStore:
    url = servers.create_database("vectors") if fresh else servers.get_database_url("vectors")
    return open_store(StoreConfig(servers.elasticsearch_url, prefix="pgbench", vectors_url=url))


if __name__ == "__main__":
    main()
