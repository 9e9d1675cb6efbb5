"""Names of the formats, and what a file's suffix promises.

Not the mimetypes module: it reads the machine's own tables, and parse keys hash the type.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from types import MappingProxyType

MARKDOWN = "text/markdown"
MDX = "text/mdx"
PLAIN = "text/plain"
RST = "text/x-rst"
HTML = "text/html"
CSV = "text/csv"
TSV = "text/tab-separated-values"
EML = "message/rfc822"
PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
PPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

SUFFIXES: Mapping[str, str] = MappingProxyType(
    {
        ".csv": CSV,
        ".docx": DOCX,
        ".eml": EML,
        ".htm": HTML,
        ".html": HTML,
        ".markdown": MARKDOWN,
        ".md": MARKDOWN,
        ".mdx": MDX,
        ".pdf": PDF,
        ".pptx": PPTX,
        ".rst": RST,
        ".tsv": TSV,
        ".txt": PLAIN,
        ".xlsx": XLSX,
    }
)


def media_type_of(path: str) -> str | None:
    """The media type that a path's suffix promises, in any case of letters."""
    return SUFFIXES.get(PurePosixPath(path).suffix.lower())
