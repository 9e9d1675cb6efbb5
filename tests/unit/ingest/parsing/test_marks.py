"""Byte order marks: offsets count the bytes of the file."""

import codecs

import pytest

from rag_assets.ingest.chunking.chunk_set import chunk_document
from rag_assets.ingest.chunking.chunkers import build_chunk_parameters
from rag_assets.ingest.parsing.media_types import HTML, MARKDOWN, PLAIN
from rag_assets.ingest.parsing.registry import parse

PAGE = "# Tée\n\nFirst words.\n\n" + "Some more words of it.\n\n" * 40


@pytest.mark.parametrize("media_type", [MARKDOWN, PLAIN, "text/x-python"])
@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
def test_chunks_begin_where_their_bytes_do_in_the_file(media_type: str, mark: bytes) -> None:
    data = mark + PAGE.encode()
    parsed = parse(data, media_type)
    assert parsed.mark_bytes == len(mark)
    parameters = build_chunk_parameters("sentence", max_characters=100, overlap=20)
    chunks = chunk_document(parsed, parameters, parsed_digest="d").chunks
    assert len(chunks) > 5
    for chunk in chunks:
        text = chunk.text.encode()
        assert data[chunk.byte_start : chunk.byte_start + len(text)] == text


def test_texts_that_are_not_the_file_have_no_mark() -> None:
    assert parse(codecs.BOM_UTF16_LE + PAGE.encode("utf-16-le"), PLAIN).mark_bytes == 0
    html = codecs.BOM_UTF8 + b"<!doctype html><p>Some words.</p>"
    assert parse(html, HTML).mark_bytes == 0
