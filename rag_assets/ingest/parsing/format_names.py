"""Names of formats, as shown to people."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from rag_assets.ingest.parsing import media_types as of

_NAMES: Mapping[str, str] = MappingProxyType(
    {
        of.MARKDOWN: "Markdown",
        of.PLAIN: "plain text",
        of.RST: "reStructuredText",
        of.EML: "e-mail",
        of.DOCX: "DOCX",
        of.PPTX: "PPTX",
        of.XLSX: "XLSX",
        of.TSV: "TSV",
    }
)
_LONGEST_ACRONYM = 4


def format_name(media_type: str | None) -> str:
    """Return the name of a media type as shown to people: "PDF", "Markdown", "python".

    Args:
        media_type: None if unknown.
    """
    if media_type is None:
        return "unknown"
    subtype = media_type.rpartition("/")[2].removeprefix("x-")
    short = subtype.upper() if len(subtype) <= _LONGEST_ACRONYM else subtype
    return _NAMES.get(media_type, short)
