"""Measure the lake: reading by key, appending, compacting, and memory.

    python -m benchmarks.lake                  300,000 vectors, 6,000 documents, about a minute
    python -m benchmarks.lake --scale 0.1      a tenth of that

Times are medians over fresh keys with the files in the page cache. Memory is the growth of a fresh
process's peak by one operation, beyond what the libraries take.
"""

from __future__ import annotations

import argparse
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.measure import create_parser
from rag_assets.common.hashing import compute_key, sha256_hex
from rag_assets.ingest.chunking.model import Chunk, Location
from rag_assets.ingest.parsing.model import Block, ParsedText
from rag_assets.storage.lake.model import ChunkSetRow, ParsedRow
from rag_assets.storage.lake.store import Lake, TenantLake

EMBEDDER = "bench/model@384"
DIMENSIONS = 384
FILES = 60
CHUNKS = 30
SAMPLE = 20
REPEATS = 9


@dataclass(frozen=True, slots=True)
class LakeCorpus:
    """The amount of data in the lake, and sample keys."""

    vectors: int
    documents: int

    def build_hash(self, number: int) -> str:
        """Return the text_sha256 of a vector."""
        return sha256_hex(f"text {number}")

    def build_key(self, number: int) -> str:
        """Return the key of a document."""
        return compute_key("document", number)

    def sample_hashes(self, seed: int, count: int = SAMPLE) -> list[str]:
        """Return a random sample of existing hashes."""
        return [
            self.build_hash(n)
            for n in random.Random(seed).sample(range(self.vectors), min(count, self.vectors))
        ]

    def sample_keys(self, seed: int, count: int = 1) -> list[str]:
        """Return a random sample of existing keys."""
        return [
            self.build_key(n)
            for n in random.Random(seed).sample(range(self.documents), min(count, self.documents))
        ]


def build_prose(seed: int, length: int = 800) -> str:
    """Return words that compress about as well as prose."""
    rng = random.Random(seed)
    words = [f"{rng.randrange(20_000):x}" for _ in range(length // 5)]
    return " ".join(words)[:length]


def _build_location(first: int) -> Location:
    return Location.from_row({"line_start": first, "line_end": first + 9})


def build_document(corpus: LakeCorpus, number: int) -> tuple[ParsedRow, ChunkSetRow]:
    """Return a document of 24 kB and its chunks."""
    texts = [build_prose(number * CHUNKS + n) for n in range(CHUNKS)]
    key = corpus.build_key(number)
    blocks = tuple(Block("paragraph", n * 800, n * 800 + 799, ("A", "B")) for n in range(CHUNKS))
    chunks = tuple(
        Chunk(n, text, n, n + 800, n, ("A", "B"), 200, sha256_hex(text), _build_location(n))
        for n, text in enumerate(texts)
    )
    parsed = ParsedText("\n".join(texts), blocks)
    return ParsedRow(key, "digest", parsed), ChunkSetRow(key, "digest", chunks)


def fill_lake(lake: TenantLake, corpus: LakeCorpus) -> None:
    """Append everything in many small files."""
    rng = np.random.default_rng(0)
    for part in range(FILES):
        numbers = range(part, corpus.vectors, FILES)
        vectors = rng.standard_normal((len(numbers), DIMENSIONS), dtype=np.float32)
        lake.append_vectors(EMBEDDER, [corpus.build_hash(n) for n in numbers], vectors)
        rows = [build_document(corpus, n) for n in range(part, corpus.documents, FILES)]
        lake.append_parsed([parsed for parsed, _ in rows])
        lake.append_chunk_sets([chunks for _, chunks in rows])


def compute_median_ms(operation: Callable[[int], object]) -> float:
    """Return the median milliseconds of an operation, which gets a fresh seed each time."""
    operation(-1)
    seconds = []
    for seed in range(REPEATS):
        start = time.perf_counter()
        operation(seed)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds) * 1000


def list_reads(
    lake: TenantLake, corpus: LakeCorpus
) -> Iterator[tuple[str, Callable[[int], object]]]:
    """Yield the reads of an edit and of a slice, by label."""
    slice_of = min(5_000, corpus.vectors // 10)
    yield (
        f"missing_vectors, {SAMPLE}",
        lambda s: lake.find_missing_vectors(EMBEDDER, corpus.sample_hashes(s)),
    )
    yield f"vectors, {SAMPLE}", lambda s: lake.vectors(EMBEDDER, corpus.sample_hashes(s))
    yield (
        f"vectors, {slice_of}",
        lambda s: lake.vectors(EMBEDDER, corpus.sample_hashes(s, slice_of)),
    )
    yield "missing_parsed, 1", lambda s: lake.find_missing_parsed(corpus.sample_keys(s))
    yield "parsed, 1", lambda s: lake.parsed(corpus.sample_keys(s))
    yield "missing_chunk_sets, 1", lambda s: lake.find_missing_chunk_sets(corpus.sample_keys(s))
    yield "chunk_sets, 1", lambda s: lake.chunk_sets(corpus.sample_keys(s))
    yield "chunk_sets, 100", lambda s: lake.chunk_sets(corpus.sample_keys(s, 100))
    yield "chunk_hashes, 100", lambda s: lake.read_chunk_hashes(corpus.sample_keys(s, 100))
    yield "due", lambda _: lake.due()
    yield "no keys", lambda _: lake.find_missing_vectors(EMBEDDER, [])


def list_appends(
    lake: TenantLake, corpus: LakeCorpus
) -> Iterator[tuple[str, Callable[[int], object]]]:
    """Yield the writes of an edit, by label."""
    vectors = np.ones((SAMPLE, DIMENSIONS), np.float32)
    yield (
        f"append_vectors, {SAMPLE}",
        lambda s: lake.append_vectors(
            EMBEDDER, [sha256_hex(f"new {s} {n}") for n in range(SAMPLE)], vectors
        ),
    )
    yield "append_parsed, 1", lambda s: lake.append_parsed([build_document(corpus, 10**6 + s)[0]])
    yield (
        "append_chunk_sets, 1",
        lambda s: lake.append_chunk_sets([build_document(corpus, 10**6 + s)[1]]),
    )


def measure_reads(lake: TenantLake, corpus: LakeCorpus) -> dict[str, float]:
    """Return the medians of all reads, in milliseconds."""
    return {name: compute_median_ms(operation) for name, operation in list_reads(lake, corpus)}


def measure_peak_growth(url: str, corpus: LakeCorpus, operation: str) -> int:
    """Return the bytes by which one operation raises the peak memory of a fresh process."""
    command = [sys.executable, __file__, "--url", url, "--peak", operation]
    sizes = ["--vectors", str(corpus.vectors), "--documents", str(corpus.documents)]
    process = subprocess.run([*command, *sizes], capture_output=True, text=True, check=True)
    return int(process.stdout)


def measure_own_peak(lake: TenantLake, corpus: LakeCorpus, operation: str) -> int:
    """Load the libraries, run the operation once, and return the growth of the peak in bytes."""
    lake.find_missing_vectors(EMBEDDER, ["unknown"])
    # Not ru_maxrss, which is inherited from the parent process.
    Path("/proc/self/clear_refs").write_text("5")
    before = read_memory("VmRSS")
    if operation == "compact":
        lake.compact()
    else:
        dict(list_reads(lake, corpus))[operation](0)
    return read_memory("VmHWM") - before


def read_memory(field: str) -> int:
    """Return the bytes that Linux reports for this process."""
    status = Path("/proc/self/status").read_text()
    return int(status.split(f"{field}:")[1].split()[0]) * 1024


def main() -> None:
    """Fill a lake in a temporary folder and print the tables."""
    parser = create_parser(__doc__)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    parser.add_argument("--vectors", type=int, default=300_000, help=argparse.SUPPRESS)
    parser.add_argument("--documents", type=int, default=6_000, help=argparse.SUPPRESS)
    args = parser.parse_args()
    corpus = LakeCorpus(int(args.vectors * args.scale), int(args.documents * args.scale))
    if args.peak:
        print(measure_own_peak(Lake(args.url).tenant("bench", 1), corpus, args.peak))
        return
    with tempfile.TemporaryDirectory() as url:
        print_report(url, corpus)


def print_report(url: str, corpus: LakeCorpus) -> None:
    """Print all figures, before and after compaction."""
    lake = Lake(url).tenant("bench", 1)
    start = time.perf_counter()
    fill_lake(lake, corpus)
    filled = time.perf_counter() - start
    for name, size in lake.size().items():
        print(f"{name}: {size.rows} rows, {size.files} files, {size.bytes / 1e6:.0f} MB")
    print(f"filled in {filled:.1f} s")
    small = measure_reads(lake, corpus)
    bounded = [name for name in small if name.startswith(("vectors", "parsed", "chunk_sets"))]
    small_peak = {name: measure_peak_growth(url, corpus, name) for name in bounded}
    start = time.perf_counter()
    compact_peak = measure_peak_growth(url, corpus, "compact")
    print(f"compacted in {time.perf_counter() - start:.1f} s, peak +{compact_peak / 1e6:.0f} MB")
    compacted = measure_reads(lake, corpus)
    compacted_peak = {name: measure_peak_growth(url, corpus, name) for name in bounded}
    print(f"\n| read | {FILES} files | compacted |\n|---|---|---|")
    for name, milliseconds in small.items():
        print(f"| {name} | {milliseconds:.1f} ms | {compacted[name]:.1f} ms |")
    for name, bytes_ in small_peak.items():
        print(f"| {name}: peak | {bytes_ / 1e6:.0f} MB | {compacted_peak[name] / 1e6:.0f} MB |")
    for name, operation in list_appends(lake, corpus):
        print(f"| {name} | | {compute_median_ms(operation):.1f} ms |")


if __name__ == "__main__":
    main()
