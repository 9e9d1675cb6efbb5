import base64
import re
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag_assets.assets.descriptions import (
    CHUNK_COLUMNS,
    DOCUMENT_COLUMNS,
    EMBEDDING_COLUMNS,
    ENTRY_COLUMNS,
    PARSED_COLUMNS,
)
from rag_assets.assets.metadata_values import (
    INLINE,
    build_bar_chart,
    build_document_link,
    build_notes_table,
    escape_markdown,
)
from rag_assets.pipeline.slices import DocumentNote
from rag_assets.storage.catalog.tables import documents
from rag_assets.storage.index.elasticsearch.mapping import build_index_body
from rag_assets.storage.index.model import IndexSpec
from rag_assets.storage.lake.rows import CHUNKS, EMBEDDINGS, PARSED_TEXT


def failures(count: int, reason: str = "it is empty") -> list[tuple[DocumentNote, str]]:
    return [(DocumentNote(f"{n:032x}", f"files/{n}.md", reason), "") for n in range(count)]


def test_a_failed_document_leads_to_its_row() -> None:
    told = build_notes_table("team", ("document", "reason"), failures(1), advice="Mend it.").value
    assert told is not None
    assert told.splitlines() == [
        "| document | reason |",
        "| --- | --- |",
        f"| [files/0.md](/documents/team/{0:032x}) | it is empty |",
        "",
        "Mend it.",
    ]


@pytest.mark.slow
@given(st.integers(0, 300), st.text(max_size=400))
def test_failures_are_listed_inline_or_replaced_by_a_link(count: int, reason: str) -> None:
    told = build_notes_table(
        "t" * 63, ("document", "reason"), failures(count, reason), status="FAILED"
    ).value
    assert told is not None
    assert len(told) < INLINE
    links = told.count("](/documents/")
    assert links == count or f"]({'/documents/' + 't' * 63}?status=FAILED)" in told


def test_a_name_is_no_markup() -> None:
    assert escape_markdown("a|b `c`\n[d](e) <f>") == r"a\|b \`c\` \[d\]\(e\) \<f\>"
    link = build_document_link("team", "1", "files/a_b](x)")
    assert link == r"[files/a\_b\]\(x\)](/documents/team/1)"


def test_a_chart_has_a_bar_for_each_count_and_fits_in_place() -> None:
    bars = [(str(8_192 - n), 123_456 * n) for n in range(7)]
    chart = build_bar_chart("up to so many tokens", bars).value
    assert chart is not None
    assert len(chart) < INLINE
    [data] = re.findall(r"base64,([^)]*)", chart)
    drawing = ET.fromstring(base64.b64decode(data))  # noqa: S314 - our own
    name = "{http://www.w3.org/2000/svg}"
    [bars_drawn] = drawing.findall(f"{name}path")
    assert bars_drawn.attrib["d"].count("M") == 7
    assert [t.text for t in drawing.findall(f"{name}text")][-2:] == ["740k", "8186"]
    assert build_bar_chart("none", [("≤ 1", 0)]).value == "none"


def test_columns_are_those_that_are_there() -> None:
    for shown, real in (
        (DOCUMENT_COLUMNS, {column.name for column in documents.c}),
        (PARSED_COLUMNS, set(PARSED_TEXT)),
        (CHUNK_COLUMNS, set(CHUNKS)),
        (EMBEDDING_COLUMNS, set(EMBEDDINGS)),
        (
            ENTRY_COLUMNS,
            set(build_index_body(IndexSpec(384, "int8_hnsw"))["mappings"]["properties"]),
        ),
    ):
        assert {column.name for column in shown.columns} <= real
