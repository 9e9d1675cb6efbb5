"""PDF through docling's full pipeline: layout and tables by docling's models, if installed."""

from __future__ import annotations

import io
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

from rag_assets.common.errors import ConfigurationError
from rag_assets.common.extras import require_extra
from rag_assets.ingest.parsing.limits import ParseLimits
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.options import ParseOptions
from rag_assets.ingest.parsing.outline import first_title
from rag_assets.ingest.parsing.pdf.docling_document import pieces_of
from rag_assets.ingest.parsing.pdf.file import PdfFile, no_text
from rag_assets.ingest.parsing.pdf.scanned_pages import more_seconds
from rag_assets.ingest.parsing.pieces import assembled, bounded
from rag_assets.ingest.parsing.titles import sensible_title

__all__ = ["more_seconds", "parse", "require_docling", "warm_up"]

_PACKAGES = ("torch", "docling_ibm_models", "docling_parse")


def require_docling(models: str | None) -> None:
    """Verify that docling's full pipeline is installed.

    Args:
        models: the folder of docling's models.

    Raises:
        ConfigurationError: packages or models are missing; the hint explains how to get them.
    """
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
    """Convert a PDF; see registry.ParseFunction.

    Raises:
        ConfigurationError: docling's pipeline is not installed.
        DocumentRejected: the PDF is encrypted, truncated, damaged, too long, or has no text.
    """
    require_docling(options.docling_models)
    with PdfFile(data, options.passwords) as file:
        limits.check_pages(len(file))
        document = _convert_pdf(file, options)
        pieces = list(bounded(pieces_of(document), limits))
        if not pieces:
            raise no_text(len(file), ocr=options.ocr)
        text, blocks = assembled(pieces)
        given = sensible_title(file.title)
        title = given or first_title(blocks)
        return ParsedText(text, blocks, title, len(file), has_lines=False)


def _convert_pdf(file: PdfFile, options: ParseOptions) -> Any:
    from docling.datamodel.base_models import DocumentStream

    converter = _get_converter(options, file.password)
    stream = DocumentStream(name="document.pdf", stream=io.BytesIO(file.data))
    return converter.convert(stream, raises_on_error=True).document


@lru_cache(maxsize=4)
def _get_converter(options: ParseOptions, password: str | None) -> Any:
    """Return a converter; its models stay loaded for the next document."""
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
