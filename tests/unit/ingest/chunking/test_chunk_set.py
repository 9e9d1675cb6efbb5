from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings

from rag_assets.ingest.chunking.chunk_set import (
    CHUNKER_VERSION,
    DROPPING_VERSION,
    ChunkSet,
    chunk_document,
    compute_chunk_set_key,
)
from rag_assets.ingest.chunking.chunkers import CHUNKERS, build_chunk_parameters
from rag_assets.ingest.chunking.kinds import ChunkerKind, ChunkParameters
from rag_assets.ingest.chunking.model import build_chunk_record, compute_text_hash, parse_chunk
from rag_assets.ingest.parsing import languages
from rag_assets.ingest.parsing.model import Block, MaskedSpan, ParsedText
from tests.chunking import parameters_of

from .documents import documents, parsed_from, prose, with_masks

SMALL = parameters_of("heading", 64, 16)


def chunked(parsed: ParsedText, parameters: ChunkParameters = SMALL) -> ChunkSet:
    return chunk_document(parsed, parameters, parsed_digest="d")


def test_a_credential_is_masked_and_its_passage_kept() -> None:
    text = prose(4) + " Key k3y-42. " + prose(3)
    parsed = with_masks(parsed_from([("paragraph", text)]), ("k3y-42", "generic-key"))
    made = chunked(parsed, parameters_of("heading", 256, 16))
    (chunk,) = made.chunks
    assert "Key ******." in chunk.text
    assert chunk.text == parsed.text.strip()
    assert made.dropped == ()


def test_a_chunk_of_masked_characters_alone_is_dropped() -> None:
    parsed = with_masks(parsed_from([("paragraph", "k3y-42")]), ("k3y-42", "generic-key"))
    made = chunked(parsed)
    assert made.chunks == ()
    assert [dropped.rules for dropped in made.dropped] == [("generic-key",)]


def test_only_the_chunk_around_a_described_pattern_is_dropped() -> None:
    parsed = with_masks(
        parsed_from(
            [("heading", "# Setup"), ("paragraph", prose(12) + " Key k3y-42. " + prose(9))]
        ),
        ("k3y-42", "described-sk"),
    )
    made = chunked(parsed)
    (dropped,) = made.dropped
    assert dropped.rules == ("described-sk",)
    assert parsed.text[dropped.start : dropped.end] == "Key ******."
    assert [chunk.ordinal for chunk in made.chunks] == list(range(len(made.chunks)))
    kept = " ".join(chunk.text for chunk in made.chunks)
    assert prose(12)[-60:] in kept
    assert prose(9)[:60] in kept
    assert "*" not in kept
    first_after = next(c for c in made.chunks if c.start > dropped.start)
    assert dropped.ordinal == first_after.ordinal


def test_a_credential_over_many_lines_names_each_rule_once() -> None:
    block = "\n".join(["-----BEGIN KEY-----", *["A" * 60] * 30, "-----END KEY-----"])
    parsed = parsed_from([("paragraph", "Before."), ("code", block), ("paragraph", "After.")])
    start = parsed.text.index("-----BEGIN")
    half = start + len(block) // 2
    spans = (MaskedSpan(start, half, "pem"), MaskedSpan(half, start + len(block), "described-rsa"))
    made = chunked(replace(parsed, masked=spans))
    assert [chunk.text for chunk in made.chunks if "." in chunk.text][-1] == "After."
    assert {rule for dropped in made.dropped for rule in dropped.rules} >= {"described-rsa"}
    assert all(list(d.rules) == sorted(set(d.rules)) for d in made.dropped)


@settings(max_examples=40)
@given(documents())
def test_a_chunk_survives_json(parsed: ParsedText) -> None:
    for chunk in chunked(parsed).chunks:
        assert parse_chunk(json.loads(json.dumps(build_chunk_record(chunk)))) == chunk


def test_facts_are_part_of_a_chunk_and_of_no_other_chunks_digest() -> None:
    parsed = parsed_from([("paragraph", "def pump(): ...")])
    plain = chunked(parsed)
    symbols = ChunkerKind(
        name="heading",
        purpose="with facts",
        split=lambda request: [
            replace(passage, facts={"symbol": request.kind})
            for passage in SMALL.kind.split(request)
        ],
        unit="tokens",
        limit=64,
    )
    known = chunked(replace(parsed, media_type="code"), ChunkParameters(symbols, 64, 16))
    assert [chunk.facts for chunk in known.chunks] == [{"symbol": "code"}]
    assert "facts" not in build_chunk_record(plain.chunks[0])
    assert parse_chunk(build_chunk_record(known.chunks[0])) == known.chunks[0]
    assert known.digest != plain.digest


MANUAL = "# Pumps\n\nThe pump runs. It stops.\n\n| a | b |\n| 1 | 2 |\n\n## Valves\n\n" + (
    "The valve opens at 4 bar. " * 60
)
ROW, SECOND, PROSE = map(MANUAL.index, ("| 1", "## V", "The valve"))
STORED = {
    "heading": ("d6e9cd86ec07233141cd79a90024b94d", "296937f609221f57eaedb2c6a772087e", 12),
    "recursive": ("b808a1d41c64360861a2fd0499f70668", "9159e0236c1929b10d58d7712ad61ec9", 12),
    "sentence": ("307fdeadb874bf4e118c38a2a62de4b9", "4935818e9424d7fd6c56a73373359953", 22),
    "record": ("757d5caf12e2a5ff772a66be6d1f3ebf", "b7b87d1c9e357730fd1d7e1ea587c0b0", 11),
}


@pytest.mark.parametrize("chunker", STORED)
def test_what_is_stored_is_not_cut_again(chunker: str) -> None:
    """Keys, digests and numbers equal those in the lakes of these versions."""
    assert (CHUNKER_VERSION, DROPPING_VERSION) == (2, 2)
    parsed = ParsedText(
        MANUAL,
        (
            Block("heading", 0, 7, ("Pumps",), 1, page=1),
            Block("paragraph", 9, 33, ("Pumps",), page=1),
            Block("row", ROW, ROW + 9, ("Pumps",), page=2, sheet="S", row=2),
            Block("heading", SECOND, SECOND + 9, ("Pumps", "Valves"), 2, page=3),
            Block("paragraph", PROSE, len(MANUAL), ("Pumps", "Valves"), page=3),
        ),
        title="Manual",
        has_lines=True,
        media_type="text/markdown",
        masked=(MaskedSpan(20, 23, "described-sk"),),
    )
    limit = {"max_characters": 100} if chunker == "sentence" else {"max_tokens": 64}
    made = chunk_document(parsed, build_chunk_parameters(chunker, **limit), parsed_digest="parsed")
    assert (made.key, made.digest, len(made.chunks)) == STORED[chunker]


def test_the_hash_covers_title_and_headings() -> None:
    parsed = parsed_from([("heading", "# H"), ("paragraph", "Text.")], title="T")
    (chunk,) = chunked(parsed).chunks
    assert chunk.text_sha256 == compute_text_hash("T", ("H",), "# H\n\nText.")


def test_the_key_depends_on_all_that_decides_the_chunks() -> None:
    keys = {
        compute_chunk_set_key("a", "text/plain", SMALL),
        compute_chunk_set_key("b", "text/plain", SMALL),
        compute_chunk_set_key("a", "text/markdown", SMALL),
        compute_chunk_set_key("a", "text/plain", replace(SMALL, limit=65)),
        compute_chunk_set_key("a", "text/plain", replace(SMALL, overlap=15)),
        compute_chunk_set_key("a", "text/plain", replace(SMALL, kind=CHUNKERS["recursive"])),
    }
    assert len(keys) == 6
    # What is in the lake already stays where it is.
    assert compute_chunk_set_key("a", "text/x-go", SMALL) == "a6972e5ea8816a69c9fa5d75fe787e93"
    assert chunked(parsed_from([])).key == compute_chunk_set_key("d", "", SMALL)


def test_another_language_detector_has_prose_chunked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    types = ("text/plain", "text/x-go")
    before = [compute_chunk_set_key("a", media_type, SMALL) for media_type in types]
    monkeypatch.setattr(languages, "get_detector_version", lambda: "another")
    after = [compute_chunk_set_key("a", media_type, SMALL) for media_type in types]
    assert [old == new for old, new in zip(before, after, strict=True)] == [False, True]


def test_the_digest_is_of_the_chunks_and_not_of_what_made_them() -> None:
    parsed = parsed_from([("heading", "# H"), ("paragraph", "One two.")])
    base = chunked(parsed)
    wider = chunked(parsed, parameters_of("heading", 128, 16))
    assert wider.key != base.key
    assert wider.digest == base.digest
    shifted = parsed_from(
        [("front_matter", "---\na: 1\n---"), ("heading", "# H"), ("paragraph", "One two.")]
    )
    others = [
        replace(parsed, title="T"),
        replace(parsed, text=parsed.text.replace("two", "six")),
        parsed_from([("heading", "# H"), ("paragraph", "One two.")], pages=True),
        shifted,
        parsed_from([]),
    ]
    digests = {chunked(other).digest for other in others}
    assert len(digests | {base.digest}) == 6
