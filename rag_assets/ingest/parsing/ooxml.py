"""The common base of DOCX, PPTX and XLSX: encryption, parts, relationships, safe XML.

Only requested parts are inflated, into memory, within limits. Nothing is unpacked to disk, and
other parts (pictures, macros, embedded files, archives) are not read. External relationships are
not followed. XML with a document type declaration, which could define entities, is refused before
it is parsed.
"""

from __future__ import annotations

import io
import posixpath
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from rag_assets.common.errors import DocumentEncrypted, DocumentRejected, DocumentTooCostly
from rag_assets.ingest.parsing.blocks import clean_property_title
from rag_assets.ingest.parsing.detection import OLE2_MARK
from rag_assets.ingest.parsing.options import ParseLimits, ParseOptions

if TYPE_CHECKING:
    from lxml.etree import _Element


_MAX_PARTS = 20_000
_ENCRYPTED = 1  # a flag of an entry in the archive
_READABLE = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# Repetitive sheets reach a ratio of 1:50, a ZIP bomb of zeros 1:1,030.
_MAX_COMPRESSION_RATIO = 200
_MIN_BYTES_FOR_RATIO = 16 * 1024**2
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError)


class Archive:
    """The parts of one ZIP archive, by name; a part is never inflated beyond its declared size.

    Raises:
        DocumentRejected: the archive is damaged, encrypted, or too large when inflated.
    """

    def __init__(self, data: bytes, limits: ParseLimits) -> None:
        try:
            self._zip = zipfile.ZipFile(io.BytesIO(data))
        except _DAMAGE:
            raise _build_damage_error() from None
        self._limit = self._bytes_left = limits.expanded_bytes
        if len(self._zip.NameToInfo) > _MAX_PARTS:
            raise DocumentTooCostly(f"the document consists of more than {_MAX_PARTS:,} parts")
        # Some writers use different upper and lower case for a name; the format treats such names
        # as equal.
        self._names = {name.lower(): name for name in self._zip.NameToInfo}

    def __contains__(self, name: str) -> bool:
        return name.lower() in self._names

    def read(self, name: str) -> bytes:
        """Return the inflated bytes of a part; b"" if it is missing."""
        entry = self._zip.NameToInfo.get(self._names.get(name.lower(), ""))
        if entry is None:
            return b""
        if entry.flag_bits & _ENCRYPTED:
            raise DocumentEncrypted(
                "a part of the document is encrypted", hint="store a copy without a password"
            )
        if entry.compress_type not in _READABLE:
            raise DocumentRejected("the document has a compression method that Office never uses")
        self._check_size(entry)
        try:
            # For any data, zipfile returns at most the size that was checked.
            return self._zip.read(entry)
        except _DAMAGE:
            raise _build_damage_error() from None

    def _check_size(self, entry: zipfile.ZipInfo) -> None:
        self._bytes_left -= entry.file_size
        if self._bytes_left < 0:
            raise DocumentTooCostly(
                f"the unpacked document is larger than the limit of {self._limit:,} bytes",
                hint="split the document",
            )
        if entry.file_size > max(
            _MIN_BYTES_FOR_RATIO, _MAX_COMPRESSION_RATIO * entry.compress_size
        ):
            raise DocumentTooCostly("the document is packed like a ZIP bomb")


def _build_damage_error() -> DocumentRejected:
    return DocumentRejected(
        "the document is damaged or truncated: a part cannot be unpacked",
        hint="copy the file again",
    )


_STRICT = (  # namespaces of ISO 29500 Strict, each with the namespace of Transitional documents
    (b"http://purl.oclc.org/ooxml/officeDocument/", b"http://schemas.openxmlformats.org/officeDocument/2006/"),
    (b"http://purl.oclc.org/ooxml/wordprocessingml/", b"http://schemas.openxmlformats.org/wordprocessingml/2006/"),
    (b"http://purl.oclc.org/ooxml/presentationml/", b"http://schemas.openxmlformats.org/presentationml/2006/"),
    (b"http://purl.oclc.org/ooxml/spreadsheetml/", b"http://schemas.openxmlformats.org/spreadsheetml/2006/"),
    (b"http://purl.oclc.org/ooxml/drawingml/", b"http://schemas.openxmlformats.org/drawingml/2006/"),
)  # fmt: skip
_DOCTYPES = (b"<!DOCTYPE", "<!DOCTYPE".encode("utf-16-le")[:-1])  # as ASCII, and as any UTF-16
_RELATION = "{http://schemas.openxmlformats.org/package/2006/relationships}Relationship"
_TITLE = "{http://purl.org/dc/elements/1.1/}title"
R_ID = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"


@dataclass(frozen=True, slots=True)
class RelatedPart:
    """A part that another part refers to by an id and a kind, such as "slide"."""

    id: str
    kind: str
    part: str


class Package:
    """The parts of an Office document."""

    def __init__(self, data: bytes, options: ParseOptions, limits: ParseLimits) -> None:
        self.archive = Archive(_decrypt(data, options), limits)
        main = [r.part for r in self.list_related("") if r.kind == "officeDocument"]
        if not main or main[0] not in self.archive:
            raise DocumentRejected("the document is damaged: the main part is missing")
        self.main = main[0]

    def read_xml(self, part: str) -> _Element | None:
        """Return the XML root of a part; None if the part is missing or empty."""
        data = self.archive.read(part)
        return _parse_xml(data) if data else None

    def read_main_xml(self) -> _Element:
        """Return the XML root of the document's main part."""
        return _parse_xml(self.archive.read(self.main))

    def list_related(self, part: str) -> list[RelatedPart]:
        """Return the parts of the package that a part refers to, in order."""
        folder, name = posixpath.split(part)
        root = self.read_xml(posixpath.join(folder, "_rels", f"{name}.rels"))
        return [] if root is None else list(_iter_relations(root, folder))

    def read_related(self, part: str, kind: str) -> _Element | None:
        """Return the XML root of the first part of this kind that a part refers to, or None."""
        part_name = next((r.part for r in self.list_related(part) if r.kind == kind), None)
        return self.read_xml(part_name) if part_name else None

    def get_title(self) -> str | None:
        """Return the title in the document's properties; None if a program seems to have set it."""
        core = self.read_related("", "core-properties")
        title = core.findtext(_TITLE) if core is not None else None
        return clean_property_title(title) if title else None


def _iter_relations(root: _Element, folder: str) -> Iterator[RelatedPart]:
    for relation in root.iter(_RELATION):
        if relation.get("TargetMode", "").lower() != "external":
            target = unquote(relation.get("Target", ""))
            part = posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/")
            kind = relation.get("Type", "").rpartition("/")[2]
            yield RelatedPart(relation.get("Id", ""), kind, part)


def _parse_xml(data: bytes) -> _Element:
    from lxml import etree

    doctype_error = DocumentRejected(
        "the document declares an XML document type, which Office never does"
    )
    if any(mark in data for mark in _DOCTYPES):
        raise doctype_error
    if b"purl.oclc.org" in data:
        for strict, common in _STRICT:
            data = data.replace(strict, common)
    # Without huge_tree, libxml2 itself limits the depth and the length of a text.
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True,
        remove_pis=True,
    )  # fmt: skip
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError:
        raise DocumentRejected("the document is damaged: a part is not well-formed XML") from None
    if root is None or root.getroottree().docinfo.doctype:
        raise doctype_error
    return root


def _decrypt(data: bytes, options: ParseOptions) -> bytes:
    """Return the bytes of the ZIP archive, decrypted with the first fitting password if needed."""
    if not data.startswith(OLE2_MARK):
        return data
    for password in options.passwords:
        if (plain := _decrypt_file(data, password)) is not None:
            return plain
    reason = (
        ", and none of parser.passwords opens it" if options.passwords else " and needs a password"
    )
    raise DocumentEncrypted(
        f"the document is encrypted{reason}",
        hint="add its password to parser.passwords, or store a copy without a password",
    )


def _decrypt_file(data: bytes, password: str) -> bytes | None:
    import msoffcrypto
    from msoffcrypto.exceptions import DecryptionError, FileFormatError, InvalidKeyError

    target = io.BytesIO()
    try:
        file = msoffcrypto.OfficeFile(io.BytesIO(data))
        file.load_key(password=password, verify_password=True)
        file.decrypt(target)
    except (InvalidKeyError, DecryptionError):
        return None
    except FileFormatError:
        raise DocumentRejected(
            "the document is damaged: not a readable encrypted document"
        ) from None
    return target.getvalue()
