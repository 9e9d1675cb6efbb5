"""PDF through docling's full pipeline: layout and tables by docling's models, if installed."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib import import_module
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.extras import require_extra
from rag_assets.ingest.parsing.blocks import (
    MAX_HEADING_LEVEL,
    Piece,
    assemble,
    clean,
    clean_property_title,
    find_first_title,
    limit_pieces,
)
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions
from rag_assets.ingest.parsing.pdf import PdfFile, build_no_text_error, more_seconds

if TYPE_CHECKING:
    from docling_core.types.doc.document import DoclingDocument


_INDENT = " "  # two for each level, since docling counts a list and its item as a level each


def iter_pieces(document: DoclingDocument) -> Iterator[Piece]:
    """Yield the pieces of a document in reading order, without running headers and footers."""
    items = document.iterate_items()
    for listed, run in groupby(items, key=lambda entry: _is_list_item(entry[0])):
        if listed:
            yield from _join_list_items(run)
        else:
            yield from (piece for item, _ in run for piece in _convert_item(item, document))


def _convert_item(item: Any, document: DoclingDocument) -> Iterator[Piece]:
    page = _get_page(item)
    match item.label:
        case "table" | "document_index":
            yield Piece("table", _format_table(item, document), page=page)
        case "title":
            yield Piece("heading", clean(item.text), 1, page)
        case "section_header":
            yield Piece("heading", clean(item.text), min(item.level + 1, MAX_HEADING_LEVEL), page)
        case "code":
            yield Piece("code", clean(item.text), page=page)
        case _ if text := clean(getattr(item, "text", "")):
            yield Piece("paragraph", text, page=page)


def _join_list_items(run: Iterable[tuple[Any, int]]) -> Iterator[Piece]:
    """Yield a run of list items as one list per page; deeper items are indented."""
    for page, group in groupby(run, key=lambda entry: _get_page(entry[0])):
        items = list(group)
        outermost = min(depth for _, depth in items)
        lines = (
            f"{_INDENT * (depth - outermost)}{item.marker or '-'} {clean(item.text)}"
            for item, depth in items
            if clean(item.text)
        )
        yield Piece("list", "\n".join(lines), page=page)


def _format_table(item: Any, document: DoclingDocument) -> str:
    """Return a table with each row on a line; a spanning cell is only in its first position."""
    lines = []
    for number, row in enumerate(item.data.grid):
        cells = (
            clean(cell.text)
            if (cell.start_row_offset_idx, cell.start_col_offset_idx) == (number, column)
            else ""
            for column, cell in enumerate(row)
        )
        lines.append(" | ".join(" ".join(cell.split()) for cell in cells).strip())
    caption = clean(item.caption_text(document))
    return "\n".join(filter(None, [caption, *lines]))


def _is_list_item(item: Any) -> bool:
    return bool(item.label == "list_item")


def _get_page(item: Any) -> int | None:
    return item.prov[0].page_no if getattr(item, "prov", None) else None


__all__ = ["more_seconds", "parse", "require_docling", "warm_up"]

_PACKAGES = ("torch", "docling_ibm_models", "docling_parse")


def require_docling(models: str | None) -> None:
    """Verify that docling's full pipeline is installed."""
    require_extra("docling", _PACKAGES, "parser.pdf: docling", "set parser.pdf: liteparse")
    if models is None or not Path(models).is_dir():
        raise ConfigurationError(
            "parser.pdf: docling needs its models, but parser.docling_models is not their folder",
            hint="run `docling-tools models download -o FOLDER`, and set parser.docling_models to"
            " FOLDER; models are never downloaded at run time",
        )


def warm_up() -> None:
    """Load the libraries before a document's limits are set."""
    import_module("docling.document_converter")
    import_module("torch")


def parse(data: bytes, media_type: str, options: ParseOptions, limits: ParseLimits) -> ParsedText:
    """Convert a PDF; see registry.ParseFunction."""
    require_docling(options.docling_models)
    with PdfFile(data, options.passwords) as file:
        limits.check_pages(len(file))
        document = _convert_pdf(file, options)
        pieces = list(limit_pieces(iter_pieces(document), limits))
        if not pieces:
            raise build_no_text_error(len(file), uses_ocr=options.ocr)
        text, blocks = assemble(pieces)
        property_title = clean_property_title(file.title)
        title = property_title or find_first_title(blocks)
        return ParsedText(text, blocks, title, len(file), has_lines=False)


def _convert_pdf(file: PdfFile, options: ParseOptions) -> Any:
    from docling.datamodel.base_models import DocumentStream

    converter = _get_converter(options, file.password)
    stream = DocumentStream(name="document.pdf", stream=io.BytesIO(file.data))
    return converter.convert(stream, raises_on_error=True).document


@lru_cache(maxsize=4)
def _get_converter(options: ParseOptions, password: str | None) -> Any:
    """Return a cached converter, so that its models stay loaded for the next document."""
    from docling.datamodel.backend_options import PdfBackendOptions
    from docling.datamodel.base_models import InputFormat
    from docling.datamodel.pipeline_options import PdfPipelineOptions, TesseractOcrOptions
    from docling.document_converter import DocumentConverter, PdfFormatOption
    from pydantic import SecretStr

    pipeline = PdfPipelineOptions(
        artifacts_path=options.docling_models,
        enable_remote_services=False,
        do_ocr=options.ocr,
        ocr_options=TesseractOcrOptions(
            lang=list(options.ocr_languages), path=options.ocr_data or None
        ),
    )
    backend = PdfBackendOptions(password=SecretStr(password) if password else None)
    pdf = PdfFormatOption(pipeline_options=pipeline, backend_options=backend)
    return DocumentConverter(
        allowed_formats=[InputFormat.PDF], format_options={InputFormat.PDF: pdf}
    )
