from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag_assets.chunking.chunk_set import ChunkSet, chunk_document, chunk_set_key
from rag_assets.chunking.model import text_hash
from rag_assets.chunking.parameters import ChunkParameters
from rag_assets.chunking.registry import chunker_for
from rag_assets.errors import ConfigurationError
from rag_assets.parsing.model import MaskedSpan, ParsedText

from .documents import documents, parsed_from, with_masks
from .test_heading import prose

SMALL = ChunkParameters(max_tokens=64, overlap=16)


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


@settings(max_examples=60, deadline=None)
@given(documents(), st.data())
def test_no_kept_chunk_touches_a_masked_span(parsed: ParsedText, data: st.DataObject) -> None:
    at = st.integers(0, max(0, len(parsed.text) - 1))
    spans = data.draw(st.lists(st.tuples(at, st.integers(1, 200)), max_size=4))
    masked = tuple(MaskedSpan(a, min(a + n, len(parsed.text)), "r") for a, n in sorted(spans))
    parsed = replace(parsed, masked=masked)
    made = chunked(parsed)
    hit = {index for mask in masked for index in range(mask.start, mask.end)}
    assert all(hit.isdisjoint(range(chunk.start, chunk.end)) for chunk in made.chunks)
    assert all(not hit.isdisjoint(range(d.start, d.end)) for d in made.dropped)
    ordinals = {d.ordinal for d in made.dropped}
    assert ordinals <= set(range(len(made.chunks) + len(made.dropped)))
    assert len(ordinals) == len(made.dropped)


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
        chunk_set_key("a", "text/plain", replace(SMALL, max_tokens=65)),
        chunk_set_key("a", "text/plain", replace(SMALL, overlap=15)),
        chunk_set_key("a", "text/plain", replace(SMALL, chunker="other")),
    }
    assert len(keys) == 6
    assert chunked(parsed_from([])).key == chunk_set_key("d", "", SMALL)


def test_the_digest_is_of_the_chunks_and_not_of_what_made_them() -> None:
    parsed = parsed_from([("heading", "# H"), ("paragraph", "One two.")])
    base = chunked(parsed)
    wider = chunked(parsed, ChunkParameters(max_tokens=128, overlap=16))
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


def test_an_unknown_chunker_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ConfigurationError) as refused:
        chunker_for(ChunkParameters(chunker="nope"))
    assert "heading" in (refused.value.hint or "")
