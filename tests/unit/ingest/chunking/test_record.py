from __future__ import annotations

from rag_assets.ingest.chunking.chunk_set import chunk_document
from rag_assets.ingest.chunking.model import Passage, build_chunks
from rag_assets.ingest.parsing.model import BlockKind, ParsedText
from tests.chunking import parameters_of, passages_of

from .documents import parsed_from, prose, with_masks
from .promises import texts

SHEET: list[tuple[BlockKind, str]] = [
    ("heading", "# Services"),
    ("heading", "## name | port"),
    *(("row", f"service {n} | {8000 + n}") for n in range(4)),
    ("paragraph", "A note below the table."),
    ("heading", "# Owners"),
    ("row", "service 0 | platform"),
]


def split(parsed: ParsedText, max_tokens: int = 64) -> list[Passage]:
    return passages_of(parsed, parameters_of("record", max_tokens, 0))


def test_every_row_is_a_passage_with_the_headings_above_it() -> None:
    parsed = parsed_from(SHEET, pages=True)
    passages = split(parsed)
    assert texts(parsed, passages) == [
        "# Services\n\n## name | port\n\nservice 0 | 8000",
        *(f"service {n} | {8000 + n}" for n in (1, 2, 3)),
        "A note below the table.",
        "# Owners\n\nservice 0 | platform",
    ]
    assert [p.heading_path for p in passages[:5]] == [("Services", "name | port")] * 5
    rows = [
        (chunk.location.row_start, chunk.location.row_end)
        for chunk in build_chunks(parsed, passages)
    ]
    assert rows == [(3, 3), (4, 4), (5, 5), (6, 6), (None, None), (9, 9)]


def test_a_row_over_the_limit_is_cut_between_its_lines() -> None:
    fields = [f"a line of the cell number {n}" for n in range(20)]
    parsed = parsed_from([("row", "\n".join(fields)), ("row", "short")])
    passages = split(parsed)
    assert len(passages) > 2
    assert texts(parsed, passages)[-1] == "short"
    for text in texts(parsed, passages)[:-1]:
        assert set(text.split("\n")) <= set(fields)


def test_a_document_without_rows_is_one_entry_if_it_fits() -> None:
    parts: list[tuple[BlockKind, str]] = [
        ("heading", "# A"),
        ("paragraph", prose(2)),
        ("heading", "# B"),
        ("paragraph", prose(2)),
    ]
    parsed = parsed_from(parts)
    assert [(p.start, p.heading_path) for p in split(parsed)] == [(0, ())]
    assert [p.heading_path for p in split(parsed, 32)] == [("A",), ("B",)]


def test_only_the_row_with_a_credential_is_dropped() -> None:
    parsed = with_masks(parsed_from(SHEET), ("service 2", "rule"))
    made = chunk_document(parsed, parameters_of("record", 64, 0), parsed_digest="d")
    [dropped] = made.dropped
    assert parsed.text[dropped.start : dropped.end] == "********* | 8002"
    assert len(made.chunks) == 5
