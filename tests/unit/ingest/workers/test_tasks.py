"""Worker processes chunk a text like this process."""

from pathlib import Path

import pytest

from rag_assets.ingest.chunking import chunkers
from rag_assets.ingest.chunking.chunk_set import ChunkSet
from rag_assets.ingest.chunking.kinds import ChunkerKind, ChunkParameters, ChunkRequest
from rag_assets.ingest.chunking.model import Passage
from rag_assets.ingest.parsing.model import ParsedText, compute_parsed_digest
from rag_assets.ingest.parsing.options import ParseLimits
from rag_assets.ingest.workers.pool import ChunkOutcome, ChunkTask, PersistentPool, WorkerPool
from rag_assets.ingest.workers.process import UnchunkedText
from rag_assets.tenants.kinds import installed_kinds
from tests.unit.ingest.conftest import Parse

DOCUMENTS = {
    "text/markdown": "# Ä title\n\nPassword: hunter2hunter2 and such.\n\n" + "Words 日本. " * 300,
    "text/csv": "name,city\n" + "Ada,Łódź\n" * 50,
    "text/x-python": "def f():\n    return 1\n\n" * 80,
    "text/plain": "",
}


@pytest.fixture(scope="module")
def texts(parse: Parse) -> list[ParsedText]:
    parsed = [parse(text.encode(), kind) for kind, text in DOCUMENTS.items() if text]
    assert all(isinstance(each, ParsedText) for each in parsed)
    return parsed


def task(texts: list[ParsedText], kind: ChunkerKind) -> ChunkTask:
    parameters = ChunkParameters(kind, kind.smallest * 4, kind.smallest if kind.overlaps else 0)
    todo = [UnchunkedText(text, compute_parsed_digest(text), parameters) for text in texts]
    return ChunkTask(todo)


def chunked_here(todo: ChunkTask) -> list[ChunkSet]:
    return [text.chunk() for text in todo.texts]


@pytest.mark.parametrize("name", installed_kinds().chunkers)
def test_a_worker_makes_equal_chunks(pool: WorkerPool, texts: list[ParsedText], name: str) -> None:
    todo = task(texts, installed_kinds().chunkers[name])
    [outcome] = pool.map([todo])
    assert outcome.chunk_sets == [text.chunk(is_confined=True) for text in todo.texts]
    assert any(one.chunks for one in outcome.chunk_sets)
    assert not outcome.left


def test_a_chunker_unknown_to_workers_works_here(pool: WorkerPool, texts: list[ParsedText]) -> None:
    def whole(request: ChunkRequest) -> list[Passage]:
        return chunkers.split_by_headings(request)[:1]

    kind = ChunkerKind("heading", "another by a built-in name", whole, "tokens", 100)
    todo = task(texts[:1], kind)
    [outcome] = pool.map([todo])
    assert outcome.chunk_sets == chunked_here(todo)
    assert len(outcome.chunk_sets[0].chunks) == 1


def test_the_text_of_a_killed_worker_is_cut_here(cache_dir: Path, texts: list[ParsedText]) -> None:
    with WorkerPool(1, ParseLimits(), cache_dir) as pool:
        worker = pool.take()
        worker._await_ready()
        worker._process.kill()
        worker._process.wait()
        todo = task(texts, installed_kinds().chunkers["heading"])
        assert todo.execute(worker) == ChunkOutcome(chunked_here(todo))
        assert not worker.is_alive
        pool.give_back(worker)


def test_a_kept_pool_keeps_its_workers_until_limits_change(cache_dir: Path) -> None:
    kept = PersistentPool(1, cache_dir)
    try:
        with kept.open(ParseLimits()) as first:
            worker = first.take()
            first.give_back(worker)
        with kept.open(ParseLimits()) as second:
            assert second is first
            assert second.take() is worker
            second.give_back(worker)
        with kept.open(ParseLimits(seconds=3)) as third:
            assert third is not first
        assert not worker.is_alive
    finally:
        kept.close()


def test_a_kept_pool_ends_its_workers_after_an_error(cache_dir: Path) -> None:
    kept = PersistentPool(1, cache_dir)
    opened = kept.open(ParseLimits())
    pool = opened.__enter__()
    worker = pool.take()
    pool.give_back(worker)
    assert not opened.__exit__(ZeroDivisionError, ZeroDivisionError(), None), "it goes on"
    assert not worker.is_alive
