"""Fixtures: rows of a lake, and a lake in a folder with an unusual name."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rag_assets.common.hashing import compute_key, sha256_hex
from rag_assets.ingest.chunking.model import Chunk
from rag_assets.ingest.parsing.model import Block, MaskedSpan, ParsedText
from rag_assets.storage.lake.model import ChunkSetRow, DroppedRow, ParsedRow
from rag_assets.storage.lake.store import Lake, TenantLake
from tests.chunking import lines


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "a läke #1 of 100%"


@pytest.fixture
def lake(folder: Path) -> Lake:
    return Lake(str(folder))


@pytest.fixture
def acme(lake: Lake) -> TenantLake:
    return lake.tenant("acme", 1)


@pytest.fixture
def parsed_row() -> Callable[[str], ParsedRow]:
    def make(text: str) -> ParsedRow:
        blocks = (
            Block("heading", 0, 1, ("Héading\x00", "ﷺ"), 2, None),
            Block("paragraph", 1, len(text), (), 0, 7),
        )
        masked = (MaskedSpan(0, 1, "aws-key"),)
        parsed = ParsedText(text, blocks, title=text[:5], pages=9, masked=masked)
        return ParsedRow(compute_key("parse", text), sha256_hex(text), parsed)

    return make


@pytest.fixture
def chunk_set() -> Callable[..., ChunkSetRow]:
    def make(*texts: str) -> ChunkSetRow:
        chunks = tuple(
            Chunk(n, text, n, n + len(text), n, ("A", text[:3]), 3, sha256_hex(text), lines(1, 2))
            for n, text in enumerate(texts)
        )
        dropped = (DroppedRow(len(texts), 5, 9, ("aws-key", "pem")),)
        key, digest = compute_key("chunk_set", *texts), sha256_hex("".join(texts))
        return ChunkSetRow(key, digest, chunks, dropped)

    return make
