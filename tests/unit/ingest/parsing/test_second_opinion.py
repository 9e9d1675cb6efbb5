"""Our parsers find everything that docling finds in the handbook's documents."""

import io
import re
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rag_assets.ingest.parsing.registry import parse

HANDBOOK = Path(__file__).parents[4] / "examples" / "handbook"
DOCUMENTS = sorted(
    path for path in HANDBOOK.rglob("*") if path.suffix in {".docx", ".pptx", ".xlsx", ".html"}
)


def backend(suffix: str) -> tuple[Any, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from docling.backend.html_backend import HTMLDocumentBackend
        from docling.backend.msexcel_backend import MsExcelDocumentBackend
        from docling.backend.mspowerpoint_backend import MsPowerpointDocumentBackend
        from docling.backend.msword_backend import MsWordDocumentBackend
        from docling.datamodel.base_models import InputFormat
    return {
        ".docx": (InputFormat.DOCX, MsWordDocumentBackend),
        ".pptx": (InputFormat.PPTX, MsPowerpointDocumentBackend),
        ".xlsx": (InputFormat.XLSX, MsExcelDocumentBackend),
        ".html": (InputFormat.HTML, HTMLDocumentBackend),
    }[suffix]


def docling_words(path: Path) -> Counter[str]:
    kind, reader = backend(path.suffix)
    from docling.datamodel.document import InputDocument

    source = io.BytesIO(path.read_bytes())
    opened = InputDocument(path_or_stream=source, format=kind, backend=reader, filename=path.name)
    found: Counter[str] = Counter()
    for item, _ in opened._backend.convert().iterate_items():
        if hasattr(item, "text"):
            found += words(item.text)
        for row in item.data.grid if hasattr(item, "data") else ():
            found += words(" ".join(cell.text for cell in row))
    return found


def words(text: str) -> Counter[str]:
    # Our parser writes numbers as their formats show them, with commas; docling does not.
    return Counter(re.findall(r"[^\W_]+", re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)))


@pytest.mark.slow
@pytest.mark.parametrize("path", DOCUMENTS, ids=[path.name for path in DOCUMENTS])
def test_no_word_is_missing(path: Path) -> None:
    theirs = docling_words(path)
    assert theirs.total() > 50
    missing = theirs - words(parse(path.read_bytes()).text)
    assert not missing


def test_there_is_a_document_of_each_kind() -> None:
    assert {path.suffix for path in DOCUMENTS} == {".docx", ".pptx", ".xlsx", ".html"}
