from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings

from rag_assets.ingest.chunking.chunk_set import ChunkSet, chunk_document, chunk_set_key
from rag_assets.ingest.chunking.model import text_hash
from rag_assets.ingest.chunking.parameters import ChunkParameters
from rag_assets.ingest.parsing import languages
from rag_assets.ingest.parsing.model import MaskedSpan, ParsedText

from .documents import documents, parsed_from, prose, with_masks

SMALL = ChunkParameters("heading", 64, 16)


def chunked(parsed: ParsedText, parameters: ChunkParameters = SMALL) -> ChunkSet:
    return chunk_document(parsed, parameters, parsed_digest="d")


def test_only_the_chunk_around_a_credential_is_dropped() -> None:
    parsed = with_masks(
        parsed_from(
            [("heading", "# Setup"), ("paragraph", prose(12) + " Key k3y-42. " + prose(9))]
        ),
        ("k3y-42", "generic-key"),
    )
    made = chunked(parsed)
    (dropped,) = made.dropped
    assert dropped.rules == ("generic-key",)
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
    spans = (MaskedSpan(start, half, "pem"), MaskedSpan(half, start + len(block), "aws"))
    made = chunked(replace(parsed, masked=spans))
    assert [chunk.text for chunk in made.chunks] == ["Before.", "After."]
    assert {rule for dropped in made.dropped for rule in dropped.rules} == {"pem", "aws"}
    assert all(list(d.rules) == sorted(set(d.rules)) for d in made.dropped)


@settings(max_examples=40, deadline=None)
@given(documents())
def test_a_record_survives_json(parsed: ParsedText) -> None:
    made = chunked(parsed)
    assert ChunkSet.from_record(json.loads(json.dumps(made.to_record()))) == made


def test_dropped_chunks_survive_a_record() -> None:
    made = chunked(with_masks(parsed_from([("paragraph", "Key k3y.")]), ("k3y", "rule")))
    assert made.dropped
    assert ChunkSet.from_record(made.to_record()) == made


def test_the_hash_covers_title_and_headings() -> None:
    parsed = parsed_from([("heading", "# H"), ("paragraph", "Text.")], title="T")
    (chunk,) = chunked(parsed).chunks
    assert chunk.text_sha256 == text_hash("T", ("H",), "# H\n\nText.")


def test_the_key_depends_on_all_that_decides_the_chunks() -> None:
    keys = {
        chunk_set_key("a", "text/plain", SMALL),
        chunk_set_key("b", "text/plain", SMALL),
        chunk_set_key("a", "text/markdown", SMALL),
        chunk_set_key("a", "text/plain", replace(SMALL, limit=65)),
        chunk_set_key("a", "text/plain", replace(SMALL, overlap=15)),
        chunk_set_key("a", "text/plain", replace(SMALL, chunker="recursive")),
    }
    assert len(keys) == 6
    # What is in the lake already stays where it is.
    assert chunk_set_key("a", "text/x-go", SMALL) == "b1d67a683e2886dd96b03c909d377df1"
    assert chunked(parsed_from([])).key == chunk_set_key("d", "", SMALL)


def test_another_detector_of_languages_asks_for_prose_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    types = ("text/plain", "text/x-go")
    before = [chunk_set_key("a", media_type, SMALL) for media_type in types]
    monkeypatch.setattr(languages, "detector_version", lambda: "another")
    after = [chunk_set_key("a", media_type, SMALL) for media_type in types]
    assert [old == new for old, new in zip(before, after, strict=True)] == [False, True]


def test_the_digest_is_of_the_chunks_and_not_of_what_made_them() -> None:
    parsed = parsed_from([("heading", "# H"), ("paragraph", "One two.")])
    base = chunked(parsed)
    wider = chunked(parsed, ChunkParameters("heading", 128, 16))
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
