"""Compare each parser with its library alone, in pages (or documents) per second and core.

    python -m benchmarks.parsing                          every format that a parser reads
    python -m benchmarks.parsing --only application/pdf --rounds 5

Three contestants take turns, so that a busy machine slows all of them: the library by itself; the
project's parser in this process; and the pool as a sync uses it, with a worker process that also
scans documents for credentials and sends the result back. Rates are per CPU second, over all
processes involved; for the pool also per second of wall time. Formats without pages count
documents. The documents come from benchmarks.documents, the libraries from benchmarks.libraries.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.documents import load_documents
from benchmarks.libraries import LIBRARIES
from benchmarks.measure import (
    WORK,
    create_parser,
    describe_machine,
    read_tree_cpu,
    report_result,
)
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions
from rag_assets.ingest.parsing.registry import PARSERS, parse, warm_up_parser
from rag_assets.ingest.workers.pool import ParseTask, WorkerPool

_LEAST_SECONDS = 1.0


def measure(media_type: str, rounds: int, cache: Path) -> dict[str, Any] | None:
    """Return medians for one format; None if there are no documents to measure it with."""
    documents = load_documents(media_type)
    if not documents:
        return None
    libraries = LIBRARIES.get(media_type, ())
    warm_up_parser(documents[0], media_type, ParseOptions())
    contestants: dict[str, Callable[[], int]] = {
        library.name: partial(_read_all, library.read, documents) for library in libraries
    }
    contestants["parser"] = lambda: sum(_parse(data, media_type) for data in documents)
    rates: dict[str, list[float]] = {name: [] for name in [*contestants, "pool", "pool wall"]}
    for library in libraries:
        library.read(documents[0])  # loads what it needs
    units = contestants["parser"]()
    with WorkerPool(1, ParseLimits(), cache) as pool:
        _parse_in_pool(pool, documents[:1], media_type)  # starts the worker
        for _ in range(rounds):
            for name, run in contestants.items():
                rates[name].append(_measure_rate(run, units)[0])
            by_cpu, by_time = _measure_rate(
                lambda: _parse_in_pool(pool, documents, media_type), units
            )
            rates["pool"].append(by_cpu)
            rates["pool wall"].append(by_time)
    medians = {name: round(statistics.median(values), 1) for name, values in rates.items()}
    return {
        "documents": len(documents),
        "megabytes": round(sum(map(len, documents)) / 1e6, 3),
        "units": units,
        "unit": "pages" if units > len(documents) else "documents",
        "stands_on": [library.name for library in libraries if library.below],
        "per_cpu_second": {name: medians[name] for name in (*contestants, "pool")},
        "pool_per_second": medians["pool wall"],
        "parser_to_library": {
            library.name: round(medians["parser"] / medians[library.name], 3)
            for library in libraries
        },
    }


def _read_all(read: Callable[[bytes], int], documents: Sequence[bytes]) -> int:
    return sum(map(read, documents))


def _parse(data: bytes, media_type: str) -> int:
    return parse(data, media_type).pages or 1


def _parse_in_pool(pool: WorkerPool, documents: Sequence[bytes], media_type: str) -> int:
    """Parse documents as a sync does; raise the first refusal."""
    tasks = (
        ParseTask(str(number), f"{number}", media_type, partial(bytes, data))
        for number, data in enumerate(documents)
    )
    results = [outcome.result for outcome in pool.map(tasks)]
    refused = [result for result in results if not isinstance(result, ParsedText)]
    if refused:
        raise refused[0]
    return len(results)


def _measure_rate(run: Callable[[], int], units: int) -> tuple[float, float]:
    """Return units per CPU second and per second of wall time, measured over at least a second."""
    cpu, started, times = read_tree_cpu(os.getpid()), time.perf_counter(), 0
    while time.perf_counter() - started < _LEAST_SECONDS:
        run()
        times += 1
    # The kernel counts CPU in hundredths of a second.
    used = max(read_tree_cpu(os.getpid()) - cpu, 0.01)
    return times * units / used, times * units / (time.perf_counter() - started)


def main() -> None:
    """Measure, print a line for each format, and save the result."""
    parser = create_parser(__doc__, name="parsing")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=sorted(PARSERS), default=sorted(PARSERS))
    parser.add_argument("--work", type=Path, default=WORK, help="folder for a scanner's cache")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    facts, formats = describe_machine(), {}
    for media_type in arguments.only:
        figures = measure(media_type, arguments.rounds, arguments.work / "cache")
        if figures is None:
            print(f"{media_type}: no documents to measure it with")
            continue
        formats[media_type] = figures
        rates = ", ".join(f"{name} {rate}" for name, rate in figures["per_cpu_second"].items())
        print(f"{media_type}: {figures['unit']} a second of CPU: {rates}", flush=True)
    result = {"rounds": arguments.rounds, "formats": formats}
    report_result(arguments.name, "parsing", facts, result)


if __name__ == "__main__":
    main()
