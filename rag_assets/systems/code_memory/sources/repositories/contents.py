"""The content of a worktree file as git would store it, to compare it with a blob.

Line endings, `$Id$` and encodings are converted here. Filters in the configuration are commands,
and are never run.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from rag_assets.systems.code_memory.sources.repositories.attributes import AttributeValue

BINARY_BYTES = 8_000
"""Number of first bytes in which a NUL makes a file binary, as in git."""
_IDENT: Final = re.compile(rb"\$Id:[^$\n]*\$")
_CONTROL: Final = bytes({*range(32), 127} - {8, 9, 10, 12, 13, 27})


@dataclass(frozen=True, slots=True)
class Conversion:
    """The conversion that git applies to a file of a worktree before it stores the file.

    Attributes:
        text: whether CRLF becomes LF; None: only if the content looks like text.
        ident: whether `$Id: …$` becomes `$Id$`.
        encoding: the encoding of the file, if it is not UTF-8.
    """

    text: bool | None = False
    ident: bool = False
    encoding: str | None = None

    @classmethod
    def of(cls, attributes: Mapping[str, AttributeValue], autocrlf: str) -> Conversion:
        """Return the conversion of a file.

        Args:
            attributes: attributes of the file.
            autocrlf: core.autocrlf of the repository, in lower case.
        """
        encoding = attributes.get("working-tree-encoding")
        return cls(
            _is_text_attribute(attributes, autocrlf),
            attributes.get("ident") is True,
            encoding if isinstance(encoding, str) else None,
        )

    def stored(self, content: bytes, blob: Callable[[], bytes | None]) -> bytes:
        """Return the content as git would store it.

        Args:
            content: content of the file.
            blob: returns the content that is already stored, if any.
        """
        if self.encoding is not None:
            content = _as_utf8(content, self.encoding)
        if b"\r\n" in content and self._converts(content, blob):
            content = content.replace(b"\r\n", b"\n")
        return _IDENT.sub(b"$Id$", content) if self.ident else content

    def _converts(self, content: bytes, blob: Callable[[], bytes | None]) -> bool:
        if self.text is not None:
            return self.text
        # Content that is stored with CRLF keeps it, whatever the current settings are.
        return not _looks_binary(content) and b"\r\n" not in (blob() or b"")


def blob_id(content: bytes) -> str:
    """Return the id of a blob with this content."""
    header = b"blob %d\0" % len(content)
    return hashlib.sha1(header + content, usedforsecurity=False).hexdigest()


def is_binary(content: bytes) -> bool:
    """Return whether content is binary rather than text."""
    return b"\0" in content[:BINARY_BYTES]


def _is_text_attribute(attributes: Mapping[str, AttributeValue], autocrlf: str) -> bool | None:
    text = attributes.get("text", attributes.get("crlf"))
    if text in (True, "input"):
        return True
    if text is False:
        return False
    if text == "auto":
        return None
    if attributes.get("eol") in ("lf", "crlf"):
        return True
    return None if autocrlf in ("true", "yes", "on", "1", "input") else False


def _looks_binary(content: bytes) -> bool:
    """Return whether git would keep line endings: after a lone CR, a NUL, or control characters."""
    if b"\0" in content or content.count(b"\r") != content.count(b"\r\n"):
        return True
    control = len(content) - len(content.translate(None, _CONTROL))
    if content.endswith(b"\x1a"):
        control -= 1
    return (len(content) - control) >> 7 < control


def _as_utf8(content: bytes, encoding: str) -> bytes:
    try:
        return content.decode(encoding).encode()
    except (LookupError, UnicodeError, ValueError):
        return content
