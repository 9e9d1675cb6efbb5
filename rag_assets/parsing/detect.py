"""What a document is, by its content first and its name second, and under which key it is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType

from rag_assets.errors import ConfigurationError, DocumentRejected
from rag_assets.hashing import key_of
from rag_assets.parsing.limits import ParseLimits
from rag_assets.parsing.model import ParsedText
from rag_assets.secrets.scanner import rules_version

TEXT = "text/markdown"
PDF = "application/pdf"

_PDF_MARK = b"%PDF-"
_PDF_MARK_WITHIN = 1024
_UTF8_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_ARCHIVE_MARK = b"PK\x03\x04"

Options = Mapping[str, bool]


@dataclass(frozen=True, slots=True)
class Parser:
    """A parser and what identifies its output.

    Attributes:
        id: which one it is.
        revision: raised by hand whenever its output may change.
        package: the installed package whose version counts as well.
        options: what may be chosen, with the defaults.
    """

    id: str
    revision: int
    package: str | None = None
    options: Options = field(default_factory=lambda: MappingProxyType({}))

    @property
    def version(self) -> str:
        """Changes whenever the parser's output may change."""
        return f"{self.revision}" + (f"+{_package_version(self.package)}" if self.package else "")

    def chosen(self, options: Options | None) -> dict[str, bool]:
        """The options with defaults filled in.

        Raises:
            ConfigurationError: the parser has no such option.
        """
        unknown = sorted(set(options or {}) - set(self.options))
        if unknown:
            raise ConfigurationError(
                f"the {self.id} parser has no option {', '.join(unknown)}",
                hint=f"it has: {', '.join(sorted(self.options)) or 'none'}",
            )
        return {**self.options, **(options or {})}


PARSERS: Mapping[str, Parser] = MappingProxyType(
    {
        TEXT: Parser("markdown", 2),
        PDF: Parser("liteparse", 2, "liteparse", MappingProxyType({"keep_headers_footers": False})),
    }
)


@cache
def _package_version(package: str) -> str:
    from importlib.metadata import version

    return version(package)


def parsers_version() -> str:
    """Changes whenever any parser or the secret rules change."""
    return key_of("parsers", {k: [p.id, p.version] for k, p in PARSERS.items()}, rules_version())


def parse_key(content_sha256: str, media_type: str | None, options: Options | None = None) -> str:
    """Where the parsed text of this content belongs.

    Args:
        content_sha256: of the bytes.
        media_type: what the source says it is; with the content it determines the parser. Which
            one that is, is known only once the bytes are read, so that all parsers' versions
            count.
        options: of the parser, where they differ from its defaults.

    Raises:
        ConfigurationError: the parser has no such option.
    """
    chosen = PARSERS[media_type_for(media_type)].chosen(options)
    return key_of("parse", content_sha256, media_type, parsers_version(), chosen)


def media_type_for(media_type: str | None) -> str:
    """The type that a document is treated as by the stages after parsing."""
    return PDF if media_type == PDF else TEXT


def detect(data: bytes, media_type: str | None = None) -> str:
    """The type that a document's bytes really have, a key of PARSERS.

    Args:
        data: the document.
        media_type: what its source says it is, mostly from its name.

    Raises:
        DocumentRejected: it is empty, or nothing that can be parsed.
    """
    if not data.strip():
        raise DocumentRejected("it is empty")
    # Only what stands before the mark tells a PDF after some junk from a text about PDFs.
    if data.removeprefix(_UTF8_MARK).lstrip().startswith(_PDF_MARK):
        return PDF
    if _PDF_MARK in data[:_PDF_MARK_WITHIN] and (media_type == PDF or not _is_text(data)):
        return PDF
    if media_type == PDF:
        raise DocumentRejected("it is not a PDF, although its name says so")
    return TEXT


def prepare_for(data: bytes) -> None:
    """Load what parsing these bytes takes."""
    if _PDF_MARK in data[:_PDF_MARK_WITHIN]:
        from rag_assets.parsing.pdf import warm_up

        warm_up()


def parse(
    data: bytes,
    media_type: str | None = None,
    options: Options | None = None,
    limits: ParseLimits | None = None,
) -> ParsedText:
    """Parse a document by what its bytes are; credentials are still in the result.

    For the worker process: others go through the pool, which bounds time and memory.

    Raises:
        DocumentRejected: it is empty, not text, or its parser rejects it.
    """
    limits = limits or ParseLimits()
    kind = detect(data, media_type)
    known = {k: v for k, v in (options or {}).items() if k in PARSERS[kind].options}
    if kind == PDF:
        from rag_assets.parsing.pdf import parse_pdf

        # liteparse wants the mark at the very start.
        return parse_pdf(data[data.find(_PDF_MARK) :], limits, **known)
    from rag_assets.parsing.markdown import parse_markdown

    return parse_markdown(_decoded(data, limits))


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return b"\0" not in data


def _decoded(data: bytes, limits: ParseLimits) -> str:
    """The text without its byte order mark: it is no part of the text, and nobody can cite it."""
    if data.startswith(_ARCHIVE_MARK):
        raise DocumentRejected("it is not text but a ZIP archive or an Office document")
    if data.startswith(_UTF16_MARKS):
        raise DocumentRejected("it is not UTF-8 text but UTF-16", hint="save it as UTF-8")
    nul = data.find(b"\0")
    if nul >= 0:
        raise DocumentRejected(f"it is not text: NUL byte at offset {nul:,}")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # error.start does not count the mark that utf-8-sig took off.
        at = error.start + (len(_UTF8_MARK) if data.startswith(_UTF8_MARK) else 0)
        raise DocumentRejected(
            f"it is not UTF-8 text: invalid byte at offset {at:,}", hint="save it as UTF-8"
        ) from None
    if not text.strip():
        raise DocumentRejected("it is empty")
    limits.check_characters(len(text))
    return text
