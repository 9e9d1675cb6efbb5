from __future__ import annotations

from typing import Any

import pytest

from rag_assets.ingest.chunking.parameters import ChunkParameters
from rag_assets.ingest.chunking.registry import CHUNKERS
from rag_assets.ingest.parsing.media_types import CSV, MARKDOWN, PDF, PLAIN, TSV, XLSX
from rag_assets.systems.registry import installed_systems
from rag_assets.tenants.chunkers import ChunkerConfig
from rag_assets.tenants.model import Tenant

SOURCES = [{"name": name, "root": "/tmp"} for name in ("wiki", "exports")]
RULES = [
    {"formats": ["csv"], "sources": ["exports"], "chunker": "record", "max_tokens": 300},
    {"formats": ["csv", "xlsx"], "chunker": "record"},
    {"sources": ["exports"], "chunker": "sentence"},
    {"source_types": ["message"], "chunker": "sentence", "max_characters": 500},
    {"formats": ["text/x-own", "code"], "chunker": "recursive", "max_tokens": 256},
    {"formats": ["md"], "source_types": ["page"], "chunker": "heading", "max_tokens": 400},
]
DEFAULT = ChunkParameters("heading", 220, 32)


@pytest.mark.parametrize(
    ("source", "source_type", "media_type", "expected"),
    [
        ("wiki", "file", MARKDOWN, DEFAULT),
        ("wiki", "file", PDF, DEFAULT),
        ("wiki", "file", CSV, ChunkParameters("record", 1200, 0)),
        ("wiki", "file", XLSX, ChunkParameters("record", 1200, 0)),
        ("exports", "file", CSV, ChunkParameters("record", 300, 0)),
        ("exports", "file", XLSX, ChunkParameters("record", 1200, 0)),
        ("exports", "file", PLAIN, ChunkParameters("sentence", 2000, 200)),
        ("exports", "message", PLAIN, ChunkParameters("sentence", 2000, 200)),
        ("wiki", "message", PLAIN, ChunkParameters("sentence", 500, 50)),
        ("wiki", "message", CSV, ChunkParameters("record", 1200, 0)),
        ("wiki", "page", MARKDOWN, ChunkParameters("heading", 400, 50)),
        ("wiki", "page", PLAIN, DEFAULT),
        ("wiki", "file", TSV, ChunkParameters("record", 1200, 0)),
        ("wiki", "file", "text/x-own", ChunkParameters("recursive", 256, 32)),
        ("wiki", "file", "text/x-python", ChunkParameters("recursive", 256, 32)),
        ("a source that is gone", "file", MARKDOWN, DEFAULT),
    ],
)
def test_the_first_rule_that_is_for_a_document_counts(
    source: str, source_type: str, media_type: str, expected: ChunkParameters
) -> None:
    tenant = Tenant.from_config({"id": "a", "sources": SOURCES, "chunkers": RULES})
    chosen = tenant.chunk_parameters(source=source, source_type=source_type, media_type=media_type)
    assert chosen == expected


@pytest.mark.parametrize("profile", installed_systems().profiles)
def test_rows_are_records_unless_a_tenant_says_otherwise(profile: str) -> None:
    config = {"id": "a", "profile": profile}
    rule = {"formats": ["csv"], "chunker": "recursive"}
    default, own = Tenant.from_config(config), Tenant.from_config({**config, "chunkers": [rule]})
    of = {"source": "files", "source_type": "file"}
    assert default.chunk_parameters(**of, media_type=CSV) == ChunkParameters.of("record")
    assert own.chunk_parameters(**of, media_type=CSV) == ChunkParameters.of("recursive")
    assert own.chunk_parameters(**of, media_type=XLSX) == ChunkParameters.of("record")


@pytest.mark.parametrize("chunker", CHUNKERS)
def test_another_chunker_than_the_profiles_takes_its_own_defaults(chunker: str) -> None:
    tenant = Tenant.from_config({"id": "a", "chunker": {"chunker": chunker}})
    own = DEFAULT if chunker == "heading" else ChunkParameters.of(chunker)
    assert tenant.chunker.parameters == own


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, ChunkParameters("heading", 1200, 150)),
        ({"chunker": "sentence", "max_characters": 640}, ChunkParameters("sentence", 640, 64)),
        ({"chunker": "recursive", "overlap": 0}, ChunkParameters("recursive", 512, 0)),
    ],
)
def test_what_is_not_set_takes_the_default(
    config: dict[str, Any], expected: ChunkParameters
) -> None:
    assert ChunkerConfig(**config).parameters == expected
