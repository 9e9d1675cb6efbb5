"""Chunkers for tests: their parameters as exact numbers, and the chunks that they produce."""

from __future__ import annotations

from rag_assets.ingest.chunking.chunk_set import chunk_document
from rag_assets.ingest.chunking.chunkers import build_chunk_parameters
from rag_assets.ingest.chunking.kinds import ChunkParameters
from rag_assets.ingest.chunking.model import Location, Passage
from rag_assets.ingest.parsing.markdown import parse_markdown
from rag_assets.ingest.parsing.media_types import CSV, XLSX
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.tenants.chunkers import ChunkerConfig
from rag_assets.tenants.kinds import installed_kinds
from rag_assets.tenants.model import Tenant


def parameters_of(chunker: str, limit: int, overlap: int) -> ChunkParameters:
    return ChunkParameters(installed_kinds().chunkers[chunker], limit, overlap)


def passages_of(parsed: ParsedText, parameters: ChunkParameters) -> list[Passage]:
    return parameters.kind.cut(parameters.request(parsed)).passages


def require_records_by_default(profile: str) -> None:
    """Require that a profile cuts tables into records, unless a tenant sets another chunker."""
    config = {"id": "a", "profile": profile}
    rule = {"formats": ["csv"], "chunker": "recursive"}
    default, own = Tenant.from_config(config), Tenant.from_config({**config, "chunkers": [rule]})
    of = {"source": "files", "source_type": "file"}
    assert default.chunk_parameters(**of, media_type=CSV) == build_chunk_parameters("record")
    assert own.chunk_parameters(**of, media_type=CSV) == build_chunk_parameters("recursive")
    assert own.chunk_parameters(**of, media_type=XLSX) == build_chunk_parameters("record")


def require_levels(chunker: str, levels: int | None, below_three: int, below_four: int) -> None:
    """Require that a chunker splits a text below a heading of level 3, or 4, into so many chunks.

    Args:
        levels: the tenant's setting; None for the chunker's default.
    """
    given = {"chunker": chunker, "max_tokens": 1_500, "overlap": 0}
    chosen = ChunkerConfig.model_validate({**given, "levels": levels}).parameters
    for marks, expected in (("###", below_three), ("####", below_four)):
        text = f"# Above\n\n{'Words of it. ' * 240}\n\n{marks} Below\n\n{'Others. ' * 60}\n"
        parsed = parse_markdown(text)
        chunks = chunk_document(parsed, chosen, parsed_digest="d", is_confined=False).chunks
        assert len(chunks) == expected
        assert sum(chunk.text.count("Words of it.") for chunk in chunks) == 240
    usual = ChunkerConfig.model_validate(given).parameters
    # Chunks with unchanged parameters keep their keys.
    assert (chosen.identity() == usual.identity()) == (levels in {None, usual.kind.levels})


def lines(first: int, last: int) -> Location:
    return Location.from_row({"line_start": first, "line_end": last})
