from importlib.util import find_spec
from pathlib import Path

import pytest
from docling_core.types.doc.base import BoundingBox
from docling_core.types.doc.document import (
    ContentLayer,
    DoclingDocument,
    ProvenanceItem,
    TableCell,
    TableData,
)
from docling_core.types.doc.labels import DocItemLabel

from rag_assets.common.errors import ConfigurationError
from rag_assets.ingest.parsing.docling import iter_pieces, require_docling
from rag_assets.ingest.parsing.media_types import PDF
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.parsing.registry import PARSERS, compute_parse_key, get_parser
from rag_assets.tenants.model import Tenant


def on(page: int) -> ProvenanceItem:
    return ProvenanceItem(page_no=page, bbox=BoundingBox(l=0, t=0, r=1, b=1), charspan=(0, 1))


def cell(text: str, row: int, column: int, *, width: int = 1) -> TableCell:
    return TableCell(
        text=text, start_row_offset_idx=row, end_row_offset_idx=row + 1, col_span=width,
        start_col_offset_idx=column, end_col_offset_idx=column + width,
    )  # fmt: skip


def test_a_docling_document_becomes_pieces() -> None:
    document = DoclingDocument(name="x")
    document.add_text(DocItemLabel.PAGE_HEADER, "Header", content_layer=ContentLayer.FURNITURE)
    document.add_title("Manual", prov=on(1))
    document.add_heading("Setting out", level=1, prov=on(1))
    document.add_text(DocItemLabel.TEXT, "Some\u00ad words.", prov=on(1))
    items = document.add_list_group()
    first = document.add_list_item("one", parent=items, prov=on(1))
    inner = document.add_list_group(parent=first)
    document.add_list_item("deeper", parent=inner, prov=on(1))
    document.add_list_item("two", parent=items, enumerated=True, marker="2.", prov=on(2))
    grid = [cell("wide", 0, 0, width=2), cell("a\nb", 1, 0), cell("c", 1, 1)]
    document.add_table(TableData(num_rows=2, num_cols=2, table_cells=grid), prov=on(2))
    document.add_code("x = 1", prov=on(3))
    assert [(p.kind, p.text, p.level, p.page) for p in iter_pieces(document)] == [
        ("heading", "Manual", 1, 1),
        ("heading", "Setting out", 2, 1),
        ("paragraph", "Some words.", 0, 1),
        ("list", "- one\n  - deeper", 0, 1),
        ("list", "2. two", 0, 2),
        ("table", "wide |\na b | c", 0, 2),
        ("code", "x = 1", 0, 3),
    ]


def test_a_tenant_s_choice_is_another_parser_with_another_key() -> None:
    docling = ParseOptions(pdf="docling")
    assert get_parser(PDF, ParseOptions()) is PARSERS[PDF]
    assert get_parser(PDF, docling).id == "pdf.docling_pipeline"
    assert compute_parse_key("a", PDF, docling) != compute_parse_key("a", PDF)


@pytest.mark.skipif(find_spec("torch") is not None, reason="docling's pipeline is installed")
def test_without_its_packages_a_tenant_is_warned_once() -> None:
    tenant = Tenant.from_config({"id": "a", "parser": {"pdf": "docling"}})
    with pytest.raises(ConfigurationError, match="needs packages that are not installed: torch"):
        _ = tenant.parser.options


def test_missing_models_have_a_remedy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("rag_assets.ingest.parsing.docling._PACKAGES", ("docling",))
    for folder in (None, str(tmp_path / "none")):
        with pytest.raises(ConfigurationError, match=r"parser\.docling_models is not their folder"):
            require_docling(folder)
    require_docling(str(tmp_path))
