"""Workers with real limits: a document that hangs, uses too much memory or crashes fails alone."""

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from rag_assets.common.errors import (
    DocumentRejected,
    DocumentTimeout,
    DocumentTooCostly,
    DocumentTooLarge,
    ServiceUnavailable,
)
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions
from rag_assets.ingest.workers.pool import ParseOutcome, ParseTask, WorkerPool
from rag_assets.ingest.workers.process import WorkerProcess, scrub_environment
from tests.unit.ingest.parsing import pdfs

ROOT = Path(__file__).resolve().parents[4]
TOO_MUCH_MEMORY = "the document needs more memory than one document may use"


def task(key: str, data: bytes, media_type: str | None = None) -> ParseTask:
    return ParseTask(key, key, media_type, lambda: data)


def ok(number: int) -> ParseTask:
    return task(f"ok{number}", f"# Title {number}".encode())


def by_key(outcomes: Iterator[ParseOutcome]) -> dict[str, object]:
    return {outcome.key: outcome.result for outcome in outcomes}


def titles(results: dict[str, object]) -> list[str | None]:
    return sorted(r.title or "" for r in results.values() if isinstance(r, ParsedText))


@pytest.fixture
def children() -> Callable[[], list[psutil.Process]]:
    """Return a function that lists the worker processes started by the test."""

    def workers() -> list[psutil.Process]:
        found = []
        for process in psutil.Process().children():
            # Another test's process may end at this moment, and wait to be reaped.
            with suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
                if "rag_assets.ingest.workers.worker" in " ".join(process.cmdline()):
                    found.append(process)
        return found

    before = {p.pid for p in workers()}
    return lambda: [p for p in workers() if p.pid not in before]


@pytest.mark.slow
def test_a_document_that_takes_too_long_fails_alone(cache_dir: Path) -> None:
    slow = pdfs.endless(400_000)
    with WorkerPool(1, ParseLimits(seconds=1.5), cache_dir) as pool:
        started = time.monotonic()
        results = by_key(pool.map([ok(1), task("slow", slow), ok(2)]))
        assert time.monotonic() - started < 30
    late = results["slow"]
    assert isinstance(late, DocumentTimeout)
    assert late.message == "parsing the document took longer than 1.5 s"
    assert titles(results) == ["Title 1", "Title 2"]


@pytest.mark.slow
def test_a_decompression_bomb_fails_alone(cache_dir: Path) -> None:
    data = pdfs.bomb(600)
    assert len(data) < 100_000
    limits = ParseLimits(seconds=60, memory_bytes=300 * 1024**2)
    with WorkerPool(1, limits, cache_dir) as pool:
        results = by_key(pool.map([ok(1), task("bomb", data), ok(2)]))
    assert isinstance(results["bomb"], DocumentTooCostly)
    assert titles(results) == ["Title 1", "Title 2"]


@pytest.mark.slow
def test_a_document_that_needs_too_much_memory_fails_alone(cache_dir: Path) -> None:
    # A million short lines take a few hundred megabytes of line and block objects.
    hungry = b"a\n\n" * 2_000_000
    limits = ParseLimits(memory_bytes=200 * 1024**2)
    with WorkerPool(1, limits, cache_dir) as pool:
        results = by_key(pool.map([ok(1), task("hungry", hungry), ok(2)]))
    assert isinstance(results["hungry"], DocumentTooCostly)
    assert results["hungry"].message == TOO_MUCH_MEMORY
    assert "parser.memory_mb" in (results["hungry"].hint or "")
    assert titles(results) == ["Title 1", "Title 2"]


@pytest.mark.slow
def test_a_usual_pdf_needs_little_memory_of_its_own(cache_dir: Path) -> None:
    data = pdfs.laid_out([[("body", f"Page {n} says this and that.")] for n in range(50)])
    with WorkerPool(1, ParseLimits(memory_bytes=150 * 1024**2), cache_dir) as pool:
        results = by_key(pool.map([task("pdf", data)]))
    assert isinstance(results["pdf"], ParsedText)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "kind", "reason"),
    [
        (signal.SIGSEGV, DocumentRejected, "the parser of the document crashed (exit code -11)"),
        (signal.SIGKILL, DocumentTooCostly, TOO_MUCH_MEMORY),
        (signal.SIGABRT, DocumentTooCostly, TOO_MUCH_MEMORY),
        (signal.SIGXCPU, DocumentTimeout, "parsing the document took longer than 60 s"),
    ],
)
def test_a_parser_that_dies_fails_its_document_and_is_replaced(
    cache_dir: Path,
    number: signal.Signals,
    kind: type[DocumentRejected],
    reason: str,
    children: Callable[[], list[psutil.Process]],
) -> None:
    with WorkerPool(1, ParseLimits(), cache_dir) as pool:
        assert titles(by_key(pool.map([ok(1)]))) == ["Title 1"]
        [worker] = children()

        def shoot_then_read() -> bytes:
            worker.send_signal(signal.SIGSTOP)
            threading.Timer(1.0, lambda: (worker.send_signal(number), worker.resume())).start()
            return b"# shot"

        shot = ParseTask("shot", "shot", None, shoot_then_read)
        results = by_key(pool.map([shot, ok(2)]))
        [other] = children()
        assert other.pid != worker.pid
    assert type(results["shot"]) is kind
    assert str(results["shot"]) == reason
    assert titles(results) == ["Title 2"]


@pytest.mark.slow
def test_workers_stay_for_the_next_documents_and_end_with_the_pool(
    cache_dir: Path, children: Callable[[], list[psutil.Process]]
) -> None:
    with WorkerPool(2, ParseLimits(), cache_dir) as pool:
        assert children() == [], "nothing starts before it is needed"
        assert len(by_key(pool.map(map(ok, range(40))))) == 40
        first = {p.pid for p in children()}
        assert len(by_key(pool.map(map(ok, range(40))))) == 40
        assert first
        assert {p.pid for p in children()} == first
    assert children() == []


@pytest.mark.slow
def test_documents_are_read_one_per_worker_and_only_when_wanted(cache_dir: Path) -> None:
    read: list[int] = []

    def tasks() -> Iterator[ParseTask]:
        for number in range(100):
            yield ParseTask(str(number), "x", None, lambda n=number: read.append(n) or b"# x")

    with WorkerPool(2, ParseLimits(), cache_dir) as pool:
        outcomes = pool.map(tasks())
        next(outcomes)
        time.sleep(1)
        assert len(read) <= 6, "two workers, two outcomes waiting for each, one taken"
        outcomes.close()  # type: ignore[attr-defined]
        before = len(read)
        time.sleep(0.2)
        assert len(read) == before
        assert titles(by_key(pool.map([ok(7)]))) == ["Title 7"]


@pytest.mark.slow
def test_an_expected_error_of_reading_is_the_outcome(cache_dir: Path) -> None:
    def too_large() -> bytes:
        raise DocumentTooLarge("it has 9 bytes, over the limit of 8")

    with WorkerPool(1, ParseLimits(), cache_dir) as pool:
        tasks = [ParseTask("large", "x", None, too_large), ok(1)]
        results = by_key(pool.map(tasks))
    assert isinstance(results["large"], DocumentTooLarge)
    assert titles(results) == ["Title 1"]


@pytest.mark.slow
def test_an_unexpected_error_of_reading_or_listing_is_raised(cache_dir: Path) -> None:
    def broken() -> Iterator[ParseTask]:
        yield ok(1)
        raise LookupError("a bug")

    with WorkerPool(1, ParseLimits(), cache_dir) as pool:
        with pytest.raises(ZeroDivisionError):
            list(pool.map([ParseTask("bug", "x", None, lambda: bytes(1 // 0))]))
        with pytest.raises(LookupError, match="a bug"):
            list(pool.map(broken()))
        assert titles(by_key(pool.map([ok(2)]))) == ["Title 2"]


def test_workers_that_do_not_start_fail(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with (
        WorkerPool(1, ParseLimits(), cache_dir) as pool,
        pytest.raises(ServiceUnavailable, match=r"ended while it started \(exit code 1\)"),
    ):
        list(pool.map([ok(1)]))


@pytest.mark.slow
def test_text_blocks_and_pages_over_the_limits_are_refused(cache_dir: Path) -> None:
    long_page = pdfs.laid_out([[("body", "A sentence of some length.")] * 40])
    three = pdfs.laid_out([[("body", f"Page {n}")] for n in range(3)])
    with WorkerPool(1, ParseLimits(characters=500, pages=2, blocks=3), cache_dir) as pool:
        tasks = [
            task("text", b"x" * 501), task("fits", b"# " + b"x" * 498), task("pdf", long_page),
            task("pages", three), task("rows", b"1,2\n" * 4, "text/csv"),
        ]  # fmt: skip
        results = by_key(pool.map(tasks))
    assert isinstance(results["fits"], ParsedText)
    assert {key: str(value) for key, value in results.items() if key != "fits"} == {
        "text": "the document's text is longer than the limit of 500 characters",
        "pdf": "the document's text is longer than the limit of 500 characters",
        "pages": "the document has 3 pages, over the limit of 2",
        "rows": "the document has 4 paragraphs and rows, over the limit of 3",
    }


@pytest.mark.slow
def test_a_worker_has_no_key_of_ours(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "planted")
    monkeypatch.setenv("RAG_ASSETS_DATABASE_URL", "planted")
    worker = WorkerProcess(ParseLimits(), cache_dir)
    try:
        assert isinstance(worker.parse(b"# x", None, ParseOptions()), ParsedText)
        raw = Path(f"/proc/{worker.pid}/environ").read_bytes().decode()
        names = {entry.partition("=")[0] for entry in raw.split("\0") if entry}
        limits = Path(f"/proc/{worker.pid}/limits").read_text()
    finally:
        worker.close()
    assert "planted" not in raw
    assert names <= {
        "PATH", "LANG", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONUTF8",
        "OMP_NUM_THREADS", "RAYON_NUM_THREADS", "MALLOC_ARENA_MAX",
    }  # fmt: skip
    assert "Max core file size        0 " in limits
    for line in ("Max address space", "Max cpu time"):
        assert "unlimited" not in limits.partition(line)[2].split()[0]
    assert set(scrub_environment({"SECRET": "x", "HTTPS_PROXY": "y", "PATH": "/bin"})) == {
        "PATH", "PYTHONPATH", "PYTHONUTF8", "OMP_NUM_THREADS", "RAYON_NUM_THREADS",
        "MALLOC_ARENA_MAX",
    }  # fmt: skip


_PARENT = """
import sys, time
from pathlib import Path
from rag_assets.ingest.parsing.options import ParseLimits
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.workers.process import WorkerProcess
from tests.unit.ingest.parsing import pdfs
worker = WorkerProcess(ParseLimits(seconds=300), Path(sys.argv[1]))
worker.parse(b"# warm", None, ParseOptions())
print(worker.pid, flush=True)
worker.parse(pdfs.endless(400_000), None, ParseOptions())
"""


@pytest.mark.slow
def test_a_worker_ends_when_its_parent_is_killed_in_the_midst_of_its_work(cache_dir: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT, str(cache_dir)],
        stdout=subprocess.PIPE, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert parent.stdout is not None
    with parent.stdout:
        worker = psutil.Process(int(parent.stdout.readline()))
    time.sleep(1.5)
    assert worker.is_running(), "it is busy with the document"
    parent.kill()
    parent.wait()
    psutil.wait_procs([worker], timeout=10)
    assert not worker.is_running() or worker.status() == psutil.STATUS_ZOMBIE
