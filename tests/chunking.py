"""Chunkers for tests: their parameters as exact numbers, and the passages that they cut."""

from __future__ import annotations

from rag_assets.ingest.chunking.kinds import ChunkParameters
from rag_assets.ingest.chunking.model import Location, Passage
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.tenants.kinds import installed_kinds


def parameters_of(chunker: str, limit: int, overlap: int) -> ChunkParameters:
    return ChunkParameters(installed_kinds().chunkers[chunker], limit, overlap)


def passages_of(parsed: ParsedText, parameters: ChunkParameters) -> list[Passage]:
    return parameters.kind.cut(parameters.request(parsed)).passages


def lines(first: int, last: int) -> Location:
    return Location.of({"line_start": first, "line_end": last})
