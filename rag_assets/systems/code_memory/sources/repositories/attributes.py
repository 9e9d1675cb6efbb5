"""Git attributes that affect how files are read, and the conversion of contents that they define.

Line endings, `$Id$` and encodings are converted here, so that a worktree file can be compared with
a blob. Filters in the configuration are commands, and are never run.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from rag_assets.common.errors import ListingFailed
from rag_assets.common.hashing import compute_key, sha256_hex
from rag_assets.ingest.sources.globs import MAX_WILDCARDS, GlobRule, GlobRules, parse_rule

GITATTRIBUTES = ".gitattributes"
MAX_ATTRIBUTES_BYTES = 1 << 20
_MAX_LINE_BYTES = 2_048
_MAX_MACROS = 100

AttributeValue: TypeAlias = "bool | str | None"
"""True if set, False if unset, a text for a value, None if unspecified."""

GENERATED, VENDORED = "linguist-generated", "linguist-vendored"
DOCUMENTATION, DETECTABLE = "linguist-documentation", "linguist-detectable"
_READ_ATTRIBUTES: Final = frozenset(
    (
        *(GENERATED, VENDORED, DOCUMENTATION, DETECTABLE),
        *("binary", "text", "eol", "crlf", "filter", "ident", "working-tree-encoding"),
    )
)
_BLANKS: Final = re.compile(rb"[ \t\r]+")
_BINARY: Final[Mapping[str, AttributeValue]] = {"binary": True, "text": False}


@dataclass(frozen=True, slots=True)
class _File:
    """The attributes in one .gitattributes file.

    Attributes:
        rules: by attribute, the path patterns and the value that each pattern sets.
        base: length in bytes of the path of the folder that contains the file.
    """

    rules: Mapping[str, tuple[GlobRules, tuple[AttributeValue, ...]]]
    base: int

    def find(self, name: str, folder: bytes, file: bytes) -> tuple[bool, AttributeValue]:
        """Return whether this file sets the attribute `name` for a path, and the value."""
        rules = self.rules.get(name)
        if rules is None:
            return False, None
        position = rules[0].find_deciding_rule(folder[self.base :], file)
        return (False, None) if position is None else (True, rules[1][position])


class Attributes:
    """The attributes of a repository's files.

    Args:
        read: returns the .gitattributes file in a folder, if any; the folder's path is empty or
            ends with a slash.
        info: the content of info/attributes, which takes precedence over all other files.
    """

    def __init__(self, read: Callable[[str], bytes | None], info: bytes | None = None) -> None:
        self._read = read
        self._macros: dict[str, Mapping[str, AttributeValue]] = {"binary": _BINARY}
        self._folders: dict[str, tuple[_File, ...]] = {}
        self._digests: dict[str, str] = {}
        self._info = self._parse(info, "", 0, "info/attributes") if info else None

    def get(self, path: str) -> dict[str, AttributeValue]:
        """Return the attributes that are specified for a file."""
        files = self._list_files(path[: path.rfind("/") + 1])
        if not files:
            return {}
        folder, name = split_path(path)
        values: dict[str, AttributeValue] = {}
        for attribute in _READ_ATTRIBUTES:
            for file in files:
                is_specified, value = file.find(attribute, folder, name)
                if is_specified:
                    if value is not None:
                        values[attribute] = value
                    break
        return values

    def compute_state(self, paths: Iterable[str]) -> str:
        """Return a hash of all attributes files that affect one of the paths."""
        for folder in {path[: path.rfind("/") + 1] for path in paths}:
            self._list_files(folder)
        return compute_key("attributes", self._digests)

    def _list_files(self, folder: str) -> tuple[_File, ...]:
        """Return the attributes files that apply to files in a folder, in order of precedence."""
        missing = []
        while folder not in self._folders:
            missing.append(folder)
            if not folder:
                break
            folder = folder[: folder.rfind("/", 0, -1) + 1]
        for at in reversed(missing):
            above = self._folders[at[: at.rfind("/", 0, -1) + 1]] if at else ()
            self._folders[at] = self._add_own_file(at, above)
        # The file info/attributes comes first in every folder.
        return self._folders[missing[0] if missing else folder]

    def _add_own_file(self, folder: str, above: tuple[_File, ...]) -> tuple[_File, ...]:
        content = self._read(folder)
        if content is not None:
            self._digests[folder] = sha256_hex(content)
        own = self._parse(content, folder, len(encode_path(folder)), folder + GITATTRIBUTES)
        if not folder:
            return tuple(file for file in (self._info, own) if file is not None)
        if own is None:
            return above
        kept_count = 1 if self._info is not None else 0
        return (*above[:kept_count], own, *above[kept_count:])

    def _parse(self, content: bytes | None, folder: str, base: int, where: str) -> _File | None:
        if not content:
            return None
        if len(content) > MAX_ATTRIBUTES_BYTES:
            raise ListingFailed(
                f"the attributes file {where!r} is larger than {MAX_ATTRIBUTES_BYTES:,} bytes",
                hint="shorten the file",
            )
        rules_by_name: dict[str, list[tuple[GlobRule, AttributeValue]]] = {}
        for line in content.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
            pattern, states = _split_line(line)
            if pattern.startswith(b"[attr]"):
                if not folder and len(self._macros) < _MAX_MACROS:
                    name = pattern.removeprefix(b"[attr]").decode("utf-8", "replace")
                    self._macros[name] = self._parse_states(states)
                continue
            # Negated patterns are forbidden; patterns of folders match no file.
            if not pattern or pattern.startswith(b"!") or pattern.endswith(b"/"):
                continue
            rule = parse_rule(pattern)
            for name, value in self._parse_states(states).items():
                if rule is not None and name in _READ_ATTRIBUTES:
                    rules_by_name.setdefault(name, []).append((rule, value))
        return _compile_rules(rules_by_name, base, where) if rules_by_name else None

    def _parse_states(self, states: list[bytes]) -> dict[str, AttributeValue]:
        values: dict[str, AttributeValue] = {}
        for state in states:
            text = state.decode("utf-8", "replace")
            name, equals, text_value = text.lstrip("-!").partition("=")
            value: AttributeValue = text_value if equals else True
            if text[:1] in "-!":
                value = False if text[0] == "-" else None
            if name in self._macros and value is True:
                values.update(self._macros[name])
            values[name] = value
        return values


def _compile_rules(
    rules_by_name: Mapping[str, list[tuple[GlobRule, AttributeValue]]], base: int, where: str
) -> _File:
    wildcards = sum(
        rule.literal is None and rule.suffix is None
        for rules in rules_by_name.values()
        for rule, _ in rules
    )
    if wildcards > MAX_WILDCARDS:
        raise ListingFailed(
            f"the patterns in {where!r} contain more than {MAX_WILDCARDS:,} wildcards",
            hint="remove patterns from the file",
        )
    return _File(
        {
            name: (GlobRules([rule for rule, _ in rules]), tuple(value for _, value in rules))
            for name, rules in rules_by_name.items()
        },
        base,
    )


def _split_line(raw: bytes) -> tuple[bytes, list[bytes]]:
    """Return the pattern and the attributes of a line; both empty if the line is ignored."""
    line = raw.strip(b" \t\r")
    if not line or line.startswith(b"#") or len(line) > _MAX_LINE_BYTES:
        return b"", []
    if line.startswith(b'"'):
        end = line.find(b'"', 1)
        if end > 0:
            return line[1:end], [part for part in _BLANKS.split(line[end + 1 :]) if part]
    pattern, *states = _BLANKS.split(line)
    return pattern, states


def encode_path(text: str) -> bytes:
    """Return a path in bytes, as Git stores it."""
    return text.encode("utf-8", "surrogateescape")


def split_path(path: str) -> tuple[bytes, bytes]:
    """Return the folder of a path with its final slash, and the name, as Git stores them."""
    encoded = encode_path(path)
    at = encoded.rfind(b"/") + 1
    return encoded[:at], encoded[at:]


BINARY_BYTES = 8_000
"""Number of first bytes in which a NUL makes a file binary, as in git."""
_IDENT: Final = re.compile(rb"\$Id:[^$\n]*\$")
_CONTROL: Final = bytes({*range(32), 127} - {8, 9, 10, 12, 13, 27})


def convert_content(
    content: bytes,
    attributes: Mapping[str, AttributeValue],
    autocrlf: str,
    read_blob: Callable[[], bytes | None],
) -> bytes:
    """Return the content of a worktree file as git would store it.

    Args:
        autocrlf: core.autocrlf, in lower case.
        read_blob: returns the content that git has stored for the file, if any.
    """
    encoding = attributes.get("working-tree-encoding")
    if isinstance(encoding, str):
        content = _decode_to_utf8(content, encoding)
    if b"\r\n" in content:
        is_text = _is_text_attribute(attributes, autocrlf)
        if is_text is None:
            # Content that is stored with CRLF keeps it, whatever the current settings are.
            is_text = not _looks_binary(content) and b"\r\n" not in (read_blob() or b"")
        content = content.replace(b"\r\n", b"\n") if is_text else content
    return _IDENT.sub(b"$Id$", content) if attributes.get("ident") is True else content


def compute_blob_id(content: bytes) -> str:
    """Return the id of the blob with this content."""
    header = b"blob %d\0" % len(content)
    return hashlib.sha1(header + content, usedforsecurity=False).hexdigest()


def is_binary(content: bytes) -> bool:
    """Return whether the first BINARY_BYTES of content contain a NUL byte."""
    return b"\0" in content[:BINARY_BYTES]


_TEXT_VALUES: Final = {True: True, "input": True, False: False, "auto": None}


def _is_text_attribute(attributes: Mapping[str, AttributeValue], autocrlf: str) -> bool | None:
    """Return whether CRLF becomes LF; None if that depends on whether it looks like text."""
    text = attributes.get("text", attributes.get("crlf"))
    if text in _TEXT_VALUES:
        return _TEXT_VALUES[text]
    if attributes.get("eol") in ("lf", "crlf"):
        return True
    return None if autocrlf in ("true", "yes", "on", "1", "input") else False


def _looks_binary(content: bytes) -> bool:
    """Return whether git would keep CRLF: with a lone CR, a NUL, or many control characters."""
    if b"\0" in content or content.count(b"\r") != content.count(b"\r\n"):
        return True
    control = len(content) - len(content.translate(None, _CONTROL))
    if content.endswith(b"\x1a"):
        control -= 1
    return (len(content) - control) >> 7 < control


def _decode_to_utf8(content: bytes, encoding: str) -> bytes:
    try:
        return content.decode(encoding).encode()
    except (LookupError, UnicodeError, ValueError):
        return content
