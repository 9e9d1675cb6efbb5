import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.tokens import count_text
from rag_assets.ingest.chunking import packer
from rag_assets.ingest.chunking.boundaries import is_boundary
from rag_assets.ingest.chunking.chunk_set import chunk_document
from rag_assets.ingest.chunking.chunkers import CHUNKERS, build_chunk_parameters
from rag_assets.ingest.chunking.kinds import MAX_TOKENS, ChunkParameters
from rag_assets.ingest.chunking.model import build_chunks
from rag_assets.ingest.chunking.packer import Grouping, Limits
from rag_assets.ingest.chunking.units import CutRules
from rag_assets.ingest.parsing.model import Block, ParsedText
from tests.chunking import parameters_of, passages_of

from .documents import documents, masked_documents, parameters, wild_documents
from .promises import check_promises, must_repeat, quick, texts


@pytest.mark.parametrize(
    ("chunker", "limit", "overlap"),
    [("heading", 1200, 150), ("recursive", 512, 64), ("sentence", 2000, 200), ("record", 1200, 0)],
)
def test_each_chunker_has_its_own_defaults(chunker: str, limit: int, overlap: int) -> None:
    assert build_chunk_parameters(chunker) == parameters_of(chunker, limit, overlap)


def test_a_limit_alone_takes_an_overlap_in_proportion() -> None:
    assert build_chunk_parameters("recursive", max_tokens=256).overlap == 32
    assert build_chunk_parameters("sentence", max_characters=100).overlap == 10
    assert build_chunk_parameters("recursive", overlap=10) == parameters_of("recursive", 512, 10)


@pytest.mark.parametrize(
    ("chunker", "settings", "says"),
    [
        ("nope", {}, "'nope'"),
        ("heading", {"max_tokens": 15}, "max_tokens is 15"),
        ("recursive", {"max_tokens": 8192}, "max_tokens is 8192"),
        ("sentence", {"max_characters": 63}, "max_characters is 63"),
        ("sentence", {"max_characters": 2048}, "max_characters is 2048"),
        ("heading", {"max_tokens": 64, "overlap": 33}, "overlap is 33"),
        ("heading", {"max_tokens": 64, "overlap": -1}, "overlap is -1"),
        ("sentence", {"max_characters": 100, "overlap": 51}, "overlap is 51"),
        ("recursive", {"max_characters": 100}, "has no setting max_characters"),
        ("sentence", {"max_tokens": 100}, "has no setting max_tokens"),
        ("record", {"overlap": 0}, "has no setting overlap"),
    ],
)
def test_settings_that_do_not_fit_fail(chunker: str, settings: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says) as refused:
        build_chunk_parameters(chunker, **settings)
    assert chunker in refused.value.message
    assert refused.value.hint


def test_an_unknown_chunker_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ConfigurationError) as refused:
        build_chunk_parameters("nope")
    assert all(name in (refused.value.hint or "") for name in CHUNKERS)


@pytest.mark.parametrize("char", ["a", "漢", "\U0001f469", "\U00020000", "\U0010fffd", "\u0301"])
def test_the_largest_limit_in_characters_keeps_to_the_tokens_an_embedder_takes(char: str) -> None:
    most = build_chunk_parameters("sentence", max_characters=MAX_TOKENS // 4, overlap=0)
    assert most.max_tokens <= MAX_TOKENS
    [passage] = passages_of(ParsedText(char * most.limit, ()), most)
    assert passage.token_count == count_text(char * most.limit) <= most.max_tokens


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
def test_a_masked_span_removes_no_other_line(parsed: ParsedText, chosen: ChunkParameters) -> None:
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
    cuts = [at for at in range(len(parsed.text) + 1) if is_boundary(parsed.text, at)]
    longest_cluster = max((b - a for a, b in pairwise(cuts)), default=0)
    for passage in passages_of(parsed, build_chunk_parameters(chunker)):
        for at in {passage.start, passage.new_start, passage.end} - edges:
            assert is_boundary(parsed.text, at) or longest_cluster > 10


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


SHAPES = {
    "prose": "The quick tenant keeps nine vectors in its lake. ",
    "words": "word ",
    "no space": "a",
    "json": '{"id":123,"name":"abc","v":[1.25,2,3]},',
    "cjk": "漢字仮名交じり文",
    "emoji": "👨‍👩‍👧‍👦🇩🇪",
    "marks": "\u0301",
    "dots": ".",
    "blank lines": "a\n\n\n",
    "spaces": "        ",
    "line ends": "\r\n",
    "abbreviations": "a.1 ",
}


def work(text: str, chunker: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """Return the number of measurements, and of measured characters."""
    calls, chars = 0, 0

    def spied(parsed: ParsedText, grammar: CutRules, limits: Limits, grouping: Grouping) -> object:
        def count(texts: Sequence[str]) -> list[int]:
            nonlocal calls, chars
            calls += 1
            chars += sum(map(len, texts))
            return grammar.measure.count(texts)

        measure = replace(grammar.measure, count=count)
        return packer.pack(parsed, replace(grammar, measure=measure), limits, grouping)

    monkeypatch.setattr("rag_assets.ingest.chunking.chunkers.pack", spied)
    parsed = ParsedText(text, (Block("paragraph", 0, len(text)),))
    passages_of(parsed, build_chunk_parameters(chunker))
    return calls, chars


@pytest.mark.no_cover
@pytest.mark.slow
@pytest.mark.parametrize("chunker", CHUNKERS)
@pytest.mark.parametrize("shape", SHAPES)
def test_work_is_linear(shape: str, chunker: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # A step that looked at the whole rest of the text for every passage would count 20 times it.
    size = 80_000
    calls, chars = work("x" + (SHAPES[shape] * size)[:size] + "x", chunker, monkeypatch)
    assert calls <= size / 8
    assert chars <= 12 * size
