"""Every chunker with every kind of document."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.ingest.chunking.boundaries import is_boundary
from rag_assets.ingest.chunking.chunk_set import chunk_document
from rag_assets.ingest.chunking.chunkers import CHUNKERS, build_chunk_parameters
from rag_assets.ingest.chunking.kinds import ChunkParameters
from rag_assets.ingest.chunking.model import build_chunks
from rag_assets.ingest.parsing.model import Block, ParsedText
from tests.chunking import parameters_of, passages_of

from .documents import documents, masked_documents, parameters, wild_documents
from .promises import check_promises, must_repeat, quick, texts


@pytest.mark.slow
@quick
@given(documents(), parameters)
def test_documents_keep_every_promise(parsed: ParsedText, chosen: ChunkParameters) -> None:
    passages = check_promises(parsed, chosen)
    chunks = list(build_chunks(parsed, passages))
    assert [chunk.ordinal for chunk in chunks] == list(range(len(passages)))
    for chunk, passage in zip(chunks, passages, strict=True):
        at = chunk.location
        assert chunk.text == parsed.text[chunk.start : chunk.end]
        assert chunk.byte_start == len(parsed.text[: chunk.start].encode())
        assert at.line_start == parsed.text.count("\n", 0, chunk.start) + 1
        assert at.line_end == parsed.text.count("\n", 0, chunk.end) + 1
        new = [b for b in parsed.blocks if b.start < passage.end and passage.new_start < b.end]
        place = (new[0].page, new[0].slide, new[0].sheet)
        assert (at.page, at.slide, at.sheet) == place
        rows = [b.row for b in new if b.row is not None and b.sheet == new[0].sheet]
        assert (at.row_start, at.row_end) == ((rows[0], rows[-1]) if rows else (None, None))
        paths = [b.heading_path for b in new if b.kind != "heading"]
        for path in paths:
            assert path[: len(chunk.heading_path)] == chunk.heading_path


@pytest.mark.slow
@quick
@given(wild_documents(), parameters)
def test_any_text_keeps_every_promise(parsed: ParsedText, chosen: ChunkParameters) -> None:
    passages = check_promises(parsed, chosen)
    for chunk in build_chunks(parsed, passages):
        assert chunk.byte_start == len(parsed.text[: chunk.start].encode())


@pytest.mark.slow
@quick
@given(masked_documents(), parameters)
def test_a_masked_span_takes_no_other_line_along(
    parsed: ParsedText, chosen: ChunkParameters
) -> None:
    check_promises(parsed, chosen)
    made = chunk_document(parsed, chosen, parsed_digest="d")
    masked = {index for mask in parsed.masked for index in range(mask.start, mask.end)}
    assert all(masked.isdisjoint(range(chunk.start, chunk.end)) for chunk in made.chunks)
    kept = {index for chunk in made.chunks for index in range(chunk.start, chunk.end)}
    for line in re.finditer(r"[^\n]+\s*", parsed.text):
        span = range(*line.span())
        if masked.isdisjoint(span) and not line[0].startswith(("---", "title: Front")):
            assert all(index in kept for index in span if not parsed.text[index].isspace())


@quick
@given(wild_documents(), st.sampled_from(sorted(CHUNKERS)))
def test_visible_characters_stay_whole(parsed: ParsedText, chunker: str) -> None:
    edges = {edge for block in parsed.blocks for edge in (block.start, block.end)}
    clusters = max((len(cluster) for cluster in _clusters(parsed.text)), default=0)
    for passage in passages_of(parsed, build_chunk_parameters(chunker)):
        for at in {passage.start, passage.new_start, passage.end} - edges:
            assert is_boundary(parsed.text, at) or clusters > 10


def _clusters(text: str) -> list[str]:
    cuts = [at for at in range(len(text) + 1) if is_boundary(text, at)]
    return [text[a:b] for a, b in pairwise(cuts)]


@pytest.mark.slow
@quick
@given(documents(), parameters)
def test_the_same_text_gives_the_same_passages(parsed: ParsedText, chosen: ChunkParameters) -> None:
    assert passages_of(parsed, chosen) == passages_of(parsed, chosen)


@pytest.mark.slow
@quick
@given(
    documents(),
    st.sampled_from([("recursive", 128, 20), ("recursive", 512, 64), ("sentence", 400, 60)]),
)
def test_every_passage_but_the_first_overlaps_where_headings_do_not_count(
    parsed: ParsedText, fields: tuple[str, int, int]
) -> None:
    chosen = parameters_of(*fields)
    for before, after in pairwise(passages_of(parsed, chosen)):
        if must_repeat(parsed, before, after, chosen):
            assert after.start < before.end


@pytest.mark.slow
@quick
@given(documents())
def test_a_record_repeats_nothing(parsed: ParsedText) -> None:
    for passage in passages_of(parsed, parameters_of("record", 64, 0)):
        assert passage.start == passage.new_start


@pytest.mark.parametrize("chunker", CHUNKERS)
@pytest.mark.parametrize("text", ["", " \n\t\n ", "\u2003"])
def test_blank_documents_have_no_passages(chunker: str, text: str) -> None:
    chosen = build_chunk_parameters(chunker)
    assert passages_of(ParsedText(text, ()), chosen) == []
    assert passages_of(ParsedText(text, (Block("paragraph", 0, len(text)),)), chosen) == []


@pytest.mark.parametrize("chunker", CHUNKERS)
def test_front_matter_is_no_prose_and_a_lone_surrogate_no_obstacle(chunker: str) -> None:
    text = "---\na: 1\n---\n" + "broken \ud800 name. " * 20
    parsed = ParsedText(text, (Block("front_matter", 0, 12), Block("paragraph", 13, len(text))))
    chosen = build_chunk_parameters(chunker)
    assert texts(parsed, check_promises(parsed, chosen)) == [text[13:].strip()]
