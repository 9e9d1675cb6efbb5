"""Names of uploaded files, made fit to be kept and shown."""

from __future__ import annotations

import re
import unicodedata

LONGEST = 200
"""Characters of a name that are kept."""

_SEPARATORS = re.compile(r"[/\\]")
_BLANKS = re.compile(r"\s+")
_LONGEST_SUFFIX = 16
# Control characters, format characters (which may turn the direction of what follows), surrogates,
# private ones and unassigned ones.
_UNSHOWN = "C"


def shown_name(given: str) -> str:
    """The name of a file without its folders and without characters that cannot be shown.

    A long name is cut before its suffix, which tells what the file is. What nothing is left of is
    "".

    Args:
        given: as a browser or a command sends it: it may hold anything.
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
