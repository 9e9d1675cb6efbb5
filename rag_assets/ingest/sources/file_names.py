"""Names of uploaded files, made safe to store and to display."""

from __future__ import annotations

import re
import unicodedata

LONGEST = 200
"""Maximum number of characters of a name that are kept."""

_SEPARATORS = re.compile(r"[/\\]")
_BLANKS = re.compile(r"\s+")
_LONGEST_SUFFIX = 16
# Control characters, format characters (which may change the direction of text), surrogates,
# private-use characters and unassigned characters.
_UNSHOWN = "C"


def shown_name(given: str) -> str:
    """Return a file name without its folders and without characters that cannot be shown.

    A name that is too long is cut before its suffix, so that the suffix still shows the file type.
    The result is "" if no character is left.

    Args:
        given: the name as a browser or a command sent it; it may contain anything.
    """
    last = _SEPARATORS.split(given)[-1]
    # Replace blanks first, since line ends and tabs are control characters too.
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
