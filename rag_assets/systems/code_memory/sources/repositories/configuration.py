"""Those few settings in a repository's configuration that affect how its content is read.

Only the repository's own file is used: no included files, no commands, no user or system files.
"""

from __future__ import annotations

import re
from typing import Final

_SECTION: Final = re.compile(rb'\[([A-Za-z0-9.-]+)(?:[ \t]+"((?:[^"\\]|\\.)*)")?\]')
_KEY: Final = re.compile(rb"([A-Za-z][A-Za-z0-9-]*)[ \t]*(=?)")
_TRUE: Final = frozenset({"true", "yes", "on", "1", ""})


def parse_configuration(content: bytes) -> dict[str, str]:
    """Return the settings in a git configuration file, by `section.key` in lower case.

    Sections with a name of their own, such as remotes, are left out. A later value of a setting
    replaces an earlier one.

    Args:
        content: content of the file; lines with invalid syntax are skipped.
    """
    found: dict[str, str] = {}
    section: str | None = None
    for raw in content.replace(b"\\\n", b"").split(b"\n"):
        line = raw.strip()
        heading = _SECTION.match(line)
        if heading:
            section = None if heading[2] is not None else heading[1].decode().lower()
            line = line[heading.end() :].strip()
        key = _KEY.match(line)
        if section is None or key is None:
            continue
        value = _parse_value(line[key.end() :]) if key[2] else ""
        found[f"{section}.{key[1].decode().lower()}"] = value
    return found


def is_true(settings: dict[str, str], name: str) -> bool:
    """Return whether a setting is switched on."""
    return settings.get(name, "false").lower() in _TRUE


def _parse_value(raw: bytes) -> str:
    """Return a value without its comment and quotation marks, and with escapes resolved."""
    out = bytearray()
    quoted = escaped = False
    for byte in raw.strip():
        char = bytes((byte,))
        if escaped:
            out += {b"n": b"\n", b"t": b"\t", b"b": b"\b"}.get(char, char)
            escaped = False
        elif char == b"\\":
            escaped = True
        elif char == b'"':
            quoted = not quoted
        elif char in b"#;" and not quoted:
            break
        else:
            out += char
    return bytes(out).strip().decode("utf-8", "surrogateescape")
