"""Names of uploaded files, made safe to store and display."""

from __future__ import annotations

import re
import unicodedata

LONGEST = 200
"""Largest number of characters to keep of a name."""

_SEPARATORS = re.compile(r"[/\\]")
_BLANKS = re.compile(r"\s+")
_LONGEST_SUFFIX = 16
# Control characters, format characters (which may change the direction of text), surrogates,
# private-use characters and unassigned characters.
_UNSHOWN = "C"


def shown_name(given: str) -> str:
    """Return a file name without its folders and without characters that cannot be shown.

    A long name is cut before its suffix, which shows the file type. The result is "" if no
    character is left.

    Args:
        given: as sent by a browser or a command; it may contain anything.
    """
    last = _SEPARATORS.split(given)[-1]
    # Blanks first: line ends and tabs are control characters, too.
    shown = "".join(
        character
        for character in _BLANKS.sub(" ", last)
        if not unicodedata.category(character).startswith(_UNSHOWN)
    )
    plain = _BLANKS.sub(" ", unicodedata.normalize("NFC", shown)).strip()
    if plain in {".", ".."}:
        return ""
    if len(plain) <= LONGEST:
        return plain
    stem, dot, suffix = plain.rpartition(".")
    if not stem or len(suffix) > _LONGEST_SUFFIX:
        return plain[:LONGEST].strip()
    end = f"{dot}{suffix}"
    return stem[: LONGEST - len(end)].strip() + end
