"""Hits made of what an index holds, in builds of the present schema and of the first."""

from __future__ import annotations

from rag_assets.indexing.model import Candidate
from rag_assets.retrieval.search import _hit

FIRST_SCHEMA = {
    "text": "Turn the wheel.",
    "uri": "files/a.md",
    "heading_path": ["A"],
    "start": 0,
    "end": 15,
    "line_start": 1,
    "line_end": 1,
    "chunk_id": "team:a.md:0",
}


def test_a_build_of_the_first_schema_answers_until_the_present_one_is_complete() -> None:
    hit = _hit(Candidate("id", "document", "key", 1.0, FIRST_SCHEMA), 0.5)
    assert (hit.text, hit.line_start, hit.media_type, hit.slide) == (
        "Turn the wheel.",
        1,
        None,
        None,
    )


def test_the_present_schema_tells_the_format_and_the_place() -> None:
    fields = {**FIRST_SCHEMA, "media_type": "application/pdf", "page": 3}
    hit = _hit(Candidate("id", "document", "key", 1.0, fields), 0.5)
    assert (hit.media_type, hit.page) == ("application/pdf", 3)
