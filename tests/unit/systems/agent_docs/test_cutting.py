"""Passages of files: limits, overlap, coverage, byte offsets."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.common.errors import DocumentRejected
from rag_assets.ingest.parsing.model import MaskedSpan, ParsedText
from rag_assets.systems.agent_docs.passages import MAX_BYTES, Chunking, CutFile, cut_file

WORDS = st.sampled_from(
    (
        *("The flag is set. ", "Wörter und Sätze! ", "これは文です。", "Это предложение? ", "\t"),
        *("\r\n", "\n\n", "\r\n\r\n", "# Heading\n", "## 二\r\n", "- item\n", "```\ncode()\n```\n"),
        *("👩‍👩‍👧‍👦 ", "a\u0301 ", "word ", "| a | b |\n|---|---|\n| 1 | 2 |\n", "longword" * 9),
        "e.g. 3.5 ",
    )
)
TEXTS = st.lists(WORDS, min_size=1, max_size=80).map("".join)
SUFFIXES = st.sampled_from(["a.md", "b.txt", "c.rst", "d.py", "noname", "e.mdx"])


def plain(parsed: ParsedText) -> ParsedText:
    return parsed


def check(cut: CutFile, data: bytes, chunking: Chunking) -> None:
    ids = [passage.chunk.id for passage in cut.passages]
    assert len(set(ids)) == len(ids)
    for passage in cut.passages:
        chunk = passage.chunk
        content = chunk.content.encode()
        assert data[chunk.byte_offset : chunk.byte_offset + len(content)] == content
        assert 0 < len(chunk.content) <= chunking.size
        assert chunk.id == f"a:{chunk.source_path}:{chunk.byte_offset}"
        assert passage.embedded.endswith(chunk.content)
    for before, after in pairwise(passage.chunk for passage in cut.passages):
        end = before.byte_offset + len(before.content.encode())
        assert len(data[after.byte_offset : end].decode()) <= chunking.overlap


@given(TEXTS, SUFFIXES, st.booleans(), st.integers(40, 400), st.integers(0, 100))
@settings(max_examples=300, deadline=None)
def test_passages_are_the_bytes_of_the_file(
    text: str, path: str, marked: bool, size: int, overlap: int
) -> None:
    data = (b"\xef\xbb\xbf" if marked else b"") + text.encode()
    chunking = Chunking(size, min(overlap, size // 2))
    try:
        cut = cut_file("a", path, data, chunking, plain)
    except DocumentRejected:
        assert not text.strip()
        return
    check(cut, data, chunking)
    covered = set()
    for passage in cut.passages:
        at = passage.chunk.byte_offset
        covered.update(range(at, at + len(passage.chunk.content.encode())))
    left_out = bytes(b for at, b in enumerate(data) if at not in covered)
    rest = left_out.removeprefix(b"\xef\xbb\xbf").decode()
    assert not any(letter.isalnum() for letter in rest)


@pytest.mark.parametrize(
    "text", ["x" * 300_000, "word " * 60_000, "文" * 100_000, "one line. " * 30_000]
)
def test_one_long_line_is_cut_within_the_limit(text: str) -> None:
    cut = cut_file("a", "a.txt", text.encode(), Chunking(), plain)
    check(cut, text.encode(), Chunking())
    assert len(cut.passages) >= len(text) // 2000


@pytest.mark.slow
@pytest.mark.parametrize("text", ["x", "One sentence. "])
def test_a_file_of_the_largest_size_is_covered(text: str) -> None:
    whole = text * (MAX_BYTES // len(text.encode()))
    cut = cut_file("a", "a.md", whole.encode(), Chunking(), plain)
    check(cut, whole.encode(), Chunking())
    covered = sum(len(passage.chunk.content) for passage in cut.passages)
    assert covered >= len(whole.rstrip())


def test_passages_may_be_larger_than_those_of_tenants() -> None:
    text = "This sentence is of some length. " * 2_000
    cut = cut_file("a", "a.txt", text.encode(), Chunking(20_000, 1_000), plain)
    assert max(len(passage.chunk.content) for passage in cut.passages) > 15_000


def test_a_credential_is_masked_in_its_passage_and_its_rule_named() -> None:
    text = "First part of it. " * 20 + "SECRET stands here. " + "Last part of it. " * 20

    def mask(parsed: ParsedText) -> ParsedText:
        at = parsed.text.index("SECRET")
        masked = parsed.text.replace("SECRET", "******")
        spans = (MaskedSpan(at, at + 6, "rule"),)
        return ParsedText(masked, parsed.blocks, parsed.media_type, masked=spans)

    cut = cut_file("a", "a.txt", text.encode(), Chunking(100, 20), mask)
    assert (cut.dropped, cut.rules) == (0, ("rule",))
    assert any("****** stands here." in passage.chunk.content for passage in cut.passages)
    assert not any("SECRET" in passage.chunk.content for passage in cut.passages)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        ("text".encode("utf-16"), "UTF-16"),
        (b"\x89PNG\x00\x00binary", "binary"),
        (b"caf\xe9", "not UTF-8"),
        (b"  \n", "empty"),
    ],
)
def test_data_that_is_no_text_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(DocumentRejected, match=why):
        cut_file("a", "a.md", data, Chunking(), plain)


def test_other_formats_are_refused_with_a_hint_at_dagster() -> None:
    with pytest.raises(DocumentRejected) as raised:
        cut_file("a", "a.pdf", b"%PDF-1.7", Chunking(), plain)
    assert "Dagster" in raised.value.advice
