from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rag_assets.common.errors import RagAssetsError
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions
from rag_assets.ingest.workers.pool import ParseTask, WorkerPool
from rag_assets.privacy.secrets.scanner import SecretScanner
from tests.rules import with_rules

Parse = Callable[..., ParsedText | RagAssetsError]


@pytest.fixture(scope="session")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return with_rules(tmp_path_factory.mktemp("rules"))


@pytest.fixture(scope="session")
def pool(cache_dir: Path) -> Iterator[WorkerPool]:
    """Start one worker with the default limits, for all tests of outcomes."""
    with WorkerPool(1, ParseLimits(), cache_dir) as pool:
        yield pool


@pytest.fixture(scope="session")
def scanner(cache_dir: Path) -> SecretScanner:
    return SecretScanner(cache_dir)


@pytest.fixture(scope="session")
def parse(pool: WorkerPool) -> Parse:
    """Return a function that parses one document in a worker process, as in production."""

    def parse(data: bytes, media_type: str | None = None, **options: Any):  # type: ignore[no-untyped-def]
        task = ParseTask("key", "name", media_type, lambda: data, ParseOptions(**options))
        [outcome] = pool.map([task])
        assert outcome.key == "key"
        return outcome.result

    return parse
