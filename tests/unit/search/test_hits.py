"""Hits from index entries, in builds of the present schema and of the first one."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from rag_assets.search.hits import build_hit as made
from rag_assets.search.model import Hit
from rag_assets.search.progress import Passage
from rag_assets.search.scoring import cap_scores
from rag_assets.storage.catalog.documents.readable import ReadableVersion
from rag_assets.storage.index.model import Candidate

FIRST_SCHEMA = {
    "text": "Turn the wheel.",
    "uri": "files/a.md",
    "heading_path": ["A"],
    "start": 0,
    "end": 15,
    "line_start": 1,
    "line_end": 1,
    "ordinal": 0,
    "chunk_id": "team:a.md:0",
    "source_type": "file",
}


def hit_of(fields: Mapping[str, object]) -> Hit:
    version = ReadableVersion("key", "files/a.md", "public", "c0ffee", stale=True)
    passage = Passage(Candidate("id", "document", "key", 1.0, "files/a.md", "text"), (), fields)
    return made(1, passage, 0.5, version, "wheel")


def test_a_build_of_the_first_schema_answers_until_the_present_one_is_complete() -> None:
    hit = hit_of(FIRST_SCHEMA)
    assert (hit.text, hit.line_start) == ("Turn the wheel.", 1)
    assert (hit.media_type, hit.slide, hit.language, hit.modified_at) == (None, None, None, None)


def test_the_present_schema_has_format_place_language_and_date() -> None:
    more = {"language": "sv", "modified_at": "2026-11-21T14:35:00.123Z"}
    hit = hit_of({**FIRST_SCHEMA, "media_type": "application/pdf", "page": 3, **more})
    assert (hit.media_type, hit.page) == ("application/pdf", 3)
    assert hit.language == "sv"
    assert hit.modified_at == datetime(2026, 11, 21, 14, 35, 0, 123_000, UTC)


def test_a_hit_of_a_document_that_changed_since_is_stale() -> None:
    assert (hit_of(FIRST_SCHEMA).stale, hit_of(FIRST_SCHEMA).source_sha256) == (True, "c0ffee")


def test_a_block_that_was_found_by_itself_is_where_a_hit_leads() -> None:
    fields = {
        **FIRST_SCHEMA,
        "text": "The wheel is heavy.\n\nTurn it left.",
        "block_id": ["a", "b"],
        "block_starts": [0, 21],
    }
    block = {
        **fields,
        "text": "Turn it left.",
        "start": 21,
        "block_id": ["b"],
        "block_starts": [21],
    }
    version = ReadableVersion("key", "files/a.md", "public", "c0ffee", stale=False)
    candidate = Candidate("id", "document", "key", 1.0, "files/a.md", "text")
    by_words = made(1, Passage(candidate, (), fields), 0.5, version, "wheel")
    by_block = made(1, Passage(candidate, (), fields, block), 0.5, version, "wheel")
    assert (by_words.block_id, by_block.block_id) == ("a", "b")
    assert (by_block.excerpt, by_block.text) == ("Turn it left.", fields["text"])
    assert by_block.url == "files/a.md#b"


@pytest.mark.parametrize(
    ("scores", "falling"),
    [
        ([3.0, 2.0, 1.0], [3.0, 2.0, 1.0]),
        ([3.0, 1.0, 2.0, None], [3.0, 1.0, 1.0, 1.0]),
        ([None, 2.0, 3.0], [2.0, 2.0, 2.0]),
        ([None], [0.0]),
        ([], []),
    ],
)
def test_no_score_is_higher_than_the_one_before(
    scores: list[float | None], falling: list[float]
) -> None:
    assert cap_scores(scores) == falling
