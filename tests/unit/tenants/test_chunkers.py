from dataclasses import replace
from typing import Any

import pytest

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.kinds import by_name
from rag_assets.ingest.chunking.chunk_set import chunk_document
from rag_assets.ingest.chunking.chunkers import CHUNKERS, build_chunk_parameters
from rag_assets.ingest.chunking.kinds import ChunkerKind, ChunkParameters, ChunkRequest
from rag_assets.ingest.chunking.model import Passage
from rag_assets.ingest.parsing.media_types import CSV, MARKDOWN, PDF, PLAIN, TSV, XLSX
from rag_assets.ingest.parsing.model import Block, ParsedText
from rag_assets.tenants.chunkers import ChunkerConfig
from rag_assets.tenants.kinds import TenantKinds
from rag_assets.tenants.model import Tenant
from tests.chunking import parameters_of, require_levels, require_records_by_default

SOURCES = [{"name": name, "root": "/tmp"} for name in ("wiki", "exports")]
RULES = [
    {"formats": ["csv"], "sources": ["exports"], "chunker": "record", "max_tokens": 300},
    {"formats": ["csv", "xlsx"], "chunker": "record"},
    {"sources": ["exports"], "chunker": "sentence"},
    {"source_types": ["message"], "chunker": "sentence", "max_characters": 500},
    {"formats": ["text/x-own", "code"], "chunker": "recursive", "max_tokens": 256},
    {"formats": ["md"], "source_types": ["page"], "chunker": "heading", "max_tokens": 400},
]
DEFAULT = parameters_of("heading", 220, 32)


@pytest.mark.parametrize(
    ("source", "source_type", "media_type", "expected"),
    [
        ("wiki", "file", MARKDOWN, DEFAULT),
        ("wiki", "file", PDF, DEFAULT),
        ("wiki", "file", CSV, parameters_of("record", 1200, 0)),
        ("wiki", "file", XLSX, parameters_of("record", 1200, 0)),
        ("exports", "file", CSV, parameters_of("record", 300, 0)),
        ("exports", "file", XLSX, parameters_of("record", 1200, 0)),
        ("exports", "file", PLAIN, parameters_of("sentence", 2000, 200)),
        ("exports", "message", PLAIN, parameters_of("sentence", 2000, 200)),
        ("wiki", "message", PLAIN, parameters_of("sentence", 500, 50)),
        ("wiki", "message", CSV, parameters_of("record", 1200, 0)),
        ("wiki", "page", MARKDOWN, parameters_of("heading", 400, 50)),
        ("wiki", "page", PLAIN, DEFAULT),
        ("wiki", "file", TSV, parameters_of("record", 1200, 0)),
        ("wiki", "file", "text/x-own", parameters_of("recursive", 256, 32)),
        ("wiki", "file", "text/x-python", parameters_of("recursive", 256, 32)),
        ("a source that is gone", "file", MARKDOWN, DEFAULT),
    ],
)
def test_the_first_matching_rule_applies(
    source: str, source_type: str, media_type: str, expected: ChunkParameters
) -> None:
    tenant = Tenant.from_config({"id": "a", "sources": SOURCES, "chunkers": RULES})
    chosen = tenant.chunk_parameters(source=source, source_type=source_type, media_type=media_type)
    assert chosen == expected


def test_rows_are_records_unless_a_tenant_sets_another_chunker() -> None:
    require_records_by_default("documents")


@pytest.mark.parametrize("chunker", CHUNKERS)
def test_another_chunker_than_the_profiles_takes_its_own_defaults(chunker: str) -> None:
    tenant = Tenant.from_config({"id": "a", "chunker": {"chunker": chunker}})
    own = DEFAULT if chunker == "heading" else build_chunk_parameters(chunker)
    assert tenant.chunker.parameters == own


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, parameters_of("heading", 1200, 150)),
        ({"chunker": "sentence", "max_characters": 640}, parameters_of("sentence", 640, 64)),
        ({"chunker": "recursive", "overlap": 0}, parameters_of("recursive", 512, 0)),
    ],
)
def test_unset_fields_take_the_default(config: dict[str, Any], expected: ChunkParameters) -> None:
    assert ChunkerConfig(**config).parameters == expected


def paragraphs(request: ChunkRequest) -> list[Passage]:
    """Return one passage per paragraph, with the request as its facts."""
    facts = {"kind": request.kind, "language": request.language, "minimum": request.minimum}
    return [
        Passage(block.start, block.start, block.end, block.heading_path, 1, facts)
        for block in request.parsed.blocks
    ]


PARAGRAPHS = ChunkerKind("paragraphs", "a paragraph each", paragraphs, "tokens", 100, minimum=7)
KINDS = TenantKinds(chunkers=by_name(CHUNKERS.values(), [PARAGRAPHS]))


def test_a_system_adds_a_chunker() -> None:
    rule = {"formats": ["md"], "chunker": "paragraphs", "max_tokens": 40}
    tenant = Tenant.from_config({"id": "a", "chunkers": [rule]}, KINDS)
    chosen = tenant.chunk_parameters(source="files", source_type="file", media_type=MARKDOWN)
    assert (chosen.kind, chosen.limit) == (PARAGRAPHS, 40)
    identity = {"chunker": "paragraphs", "max_tokens": 40, "overlap": 0, "minimum": 7}
    assert chosen.identity() == identity
    text = "The pump runs through the night, and it stops in the morning."
    block = Block("paragraph", 0, len(text))
    parsed = ParsedText(text, (block,), has_lines=True, media_type=MARKDOWN)
    [chunk] = chunk_document(parsed, chosen, parsed_digest="d").chunks
    assert chunk.facts == {"kind": MARKDOWN, "language": "en", "minimum": 7}
    assert (chunk.location.line_start, chunk.location.line_end) == (1, 1)


def test_a_chunker_of_a_system_is_unknown_without_it() -> None:
    with pytest.raises(ConfigurationError, match="chunker: choose one of: heading, recursive, s"):
        Tenant.from_config({"id": "a", "chunker": {"chunker": "paragraphs"}})


def test_another_version_or_minimum_has_another_identity() -> None:
    kinds = [PARAGRAPHS, replace(PARAGRAPHS, version=2), replace(PARAGRAPHS, minimum=0)]
    identities = [ChunkParameters(kind, 40, 0).identity() for kind in kinds]
    assert len({str(identity) for identity in identities}) == len(kinds)


@pytest.mark.parametrize(
    ("chunker", "levels", "below_three", "below_four"),
    [("heading", None, 2, 2), ("heading", 9, 2, 2), ("heading", 3, 2, 1), ("heading", 2, 1, 1)],
)
def test_documents_are_cut_at_the_levels_that_a_tenant_chooses(
    chunker: str, levels: int | None, below_three: int, below_four: int
) -> None:
    require_levels(chunker, levels, below_three, below_four)


@pytest.mark.parametrize(
    ("chunker", "levels", "said"),
    [("heading", 0, "levels is 0"), ("sentence", 2, "has no setting levels")],
)
def test_levels_that_there_are_not_are_refused(chunker: str, levels: int, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        ChunkerConfig.model_validate({"chunker": chunker, "levels": levels})
