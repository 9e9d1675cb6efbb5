"""Workers chunk code as this process does."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rag_assets.ingest.chunking.kinds import UNREAD, ChunkParameters
from rag_assets.ingest.parsing.model import ParsedText, compute_parsed_digest
from rag_assets.ingest.parsing.options import ParseLimits
from rag_assets.ingest.workers.pool import ChunkOutcome, ChunkTask, WorkerPool
from rag_assets.ingest.workers.process import UnchunkedText
from rag_assets.tenants.kinds import installed_kinds
from tests.unit.ingest.conftest import Parse, cache_dir, parse, pool
from tests.unit.ingest.workers.test_tasks import task, texts

__all__ = ["cache_dir", "parse", "pool", "texts"]  # fixtures


@pytest.mark.parametrize("chosen", [{"path_hint": "known_bug"}, {"levels": 1}])
def test_a_worker_knows_path_hint_and_levels(
    pool: WorkerPool, parse: Parse, chosen: dict[str, Any]
) -> None:
    text = "# Open bugs\n\n## Sums\n\nWrong.\n\n## Dark\n\nVery.\n" + "\n### Why\n\nWords.\n" * 99
    parsed = parse(text.encode(), "text/markdown")
    assert isinstance(parsed, ParsedText)
    usual = ChunkParameters(installed_kinds().chunkers["code"], 1200, 0)
    todo = [
        UnchunkedText(parsed, compute_parsed_digest(parsed), parameters)
        for parameters in (usual, replace(usual, **chosen))
    ]
    [outcome] = pool.map([ChunkTask(todo)])
    plain, other = outcome.chunk_sets
    assert [plain, other] == [one.chunk(is_confined=True) for one in todo]
    assert (plain.key, plain.digest) != (other.key, other.digest)


def test_texts_that_a_parser_reads_are_tried_again_one_by_one_and_never_parsed_here(
    cache_dir: Path, texts: list[ParsedText]
) -> None:
    with WorkerPool(1, ParseLimits(), cache_dir) as pool:
        worker = pool.take()
        worker._await_ready()
        worker._process.kill()
        worker._process.wait()
        todo = task(texts, installed_kinds().chunkers["code"])
        assert todo.execute(worker) == ChunkOutcome((), todo.texts)
        single = ChunkTask(todo.texts[:1])
        assert single.execute(worker) == ChunkOutcome([todo.texts[0].chunk()])
        assert [fact.kind for fact in todo.texts[0].chunk().facts] == [UNREAD]
        pool.give_back(worker)
