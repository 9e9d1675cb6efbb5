"""The names of the languages that documents can have.

This module is separate from the detector, so that programs that only validate a name need not load
the detector.
"""

from __future__ import annotations

import re

from rag_assets.ingest.parsing.media_types import SOURCE_CODE

_CODES = (
    "af am an ar as av az ba be bg bh bn bo br bs ca ce co cs cv cy da de dv el en eo es et"
    " eu fa fi fr fy ga gd gl gn gu gv he hi hr ht hu hy ia id ie io is it ja jv ka kk km kn"
    " ko ku kv kw ky la lb li lo lt lv mg mk ml mn mr ms mt my ne nl nn no oc or os pa pl ps"
    " pt qu rm ro ru sa sc sd sh si sk sl so sq sr su sv sw ta te tg th tk tl tr tt ug uk ur"
    " uz vi vo wa yi yo zh"
)
PROSE = frozenset(_CODES.split())
"""ISO 639-1 codes that the detector supports."""
LANGUAGE_NAMES = {
    "am": "Amharic", "ar": "Arabic", "be": "Belarusian", "bg": "Bulgarian", "bn": "Bengali",
    "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English",
    "es": "Spanish", "fa": "Persian", "fi": "Finnish", "fr": "French", "gu": "Gujarati",
    "he": "Hebrew", "hi": "Hindi", "hu": "Hungarian", "hy": "Armenian", "it": "Italian",
    "ja": "Japanese", "ka": "Georgian", "kk": "Kazakh", "km": "Khmer", "kn": "Kannada",
    "ko": "Korean", "lo": "Lao", "mk": "Macedonian", "ml": "Malayalam", "mn": "Mongolian",
    "mr": "Marathi", "my": "Burmese", "ne": "Nepali", "nl": "Dutch", "no": "Norwegian",
    "pa": "Punjabi", "pl": "Polish", "ps": "Pashto", "pt": "Portuguese", "ro": "Romanian",
    "ru": "Russian", "si": "Sinhala", "sr": "Serbian", "sv": "Swedish", "ta": "Tamil",
    "te": "Telugu", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian", "ur": "Urdu",
    "vi": "Vietnamese", "zh": "Chinese",
}  # fmt: skip
"""English names as shown to people, by code; a rarer language is shown by its code."""
PROGRAMMING = frozenset(media_type.removeprefix("text/x-") for media_type in SOURCE_CODE)

PATTERN = (
    rf"^(({'|'.join(sorted(PROSE))})(-[a-zA-Z0-9]+)*|"
    rf"{'|'.join(map(re.escape, sorted(PROGRAMMING)))})$"
)
"""Pattern of names in lower case, for descriptions. Names in upper case are accepted as well."""

_EXPECTED = (
    "it must be an ISO 639-1 code that documents can be in, or the name of a programming language:"
    f" {', '.join([*sorted(PROSE), *sorted(PROGRAMMING)])}"
)


def language_named(given: str) -> str:
    """Return the name of a language as stored with documents; for a tag (`en-GB`), its first part.

    Raises:
        ValueError: no document can have this language; the message does not quote the name.
    """
    name = given.lower()
    if name in PROGRAMMING:
        return name
    code = name.replace("_", "-").partition("-")[0]
    if code not in PROSE:
        raise ValueError(_EXPECTED)
    return code
