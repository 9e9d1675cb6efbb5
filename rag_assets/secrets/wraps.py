"""Lines put together over which a layout broke a token."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rag_assets.secrets.views import View, ViewBuilder, is_mixed_word

_WRAPPED = re.compile(r"[ \t]*(?:<br ?/?>|\\)?\r?\n[ \t>|]*(?=[A-Za-z0-9+/=_~-])")
_LINE_BREAK = re.compile(r"<br ?/?>$")
_TOKEN_CHARACTERS = frozenset(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+/=_~.-"
)
_LINE_ENDS = _TOKEN_CHARACTERS | frozenset(" \t\r\\>")
_PIECE_RIGHT = re.compile(r"[A-Za-z0-9+/=_~.-]*")
_MOST_PIECES = 8
_REACH = 240


@dataclass(frozen=True, slots=True)
class Seam:
    """A place of a view at which two lines were put together.

    Attributes:
        at: where the second line begins, as a place in the view.
        end: where the piece of a token ends that it begins with.
        certain: whether that piece is no word of a language.
    """

    at: int
    end: int
    certain: bool


def joined(text: str) -> Iterator[tuple[View, list[Seam]]]:
    """Lines put together over which a token may run, with the places where they were joined."""
    done = 0
    for gap in _gaps(text):
        if gap.start() < done:
            continue
        builder = ViewBuilder()
        start = max(text.rfind("\n", 0, gap.start()) + 1, gap.start() - _REACH)
        builder.keep(text[start : gap.start()], start)
        length = gap.start() - start
        seams: list[Seam] = []
        following: re.Match[str] | None = gap
        while following is not None and len(seams) < _MOST_PIECES:
            at = following.end()
            piece = _PIECE_RIGHT.match(text, at, at + _REACH)
            end = piece.end() if piece else at
            rest = text[at:end]
            certain = is_mixed_word(rest) and "=" not in rest.rstrip("=")
            builder.keep(text[at:end], at)
            seams.append(Seam(length, length + end - at, certain))
            length += end - at
            following = _WRAPPED.match(text, end) if certain else None
        done = at
        yield builder.view(), seams


def _gaps(text: str) -> Iterator[re.Match[str]]:
    """Ends of lines whose last word looks like a piece of a token."""
    start = 0
    end = text.find("\n")
    while end >= 0:
        if end > start and (text[end - 1] in _LINE_ENDS):
            low = max(start, end - _REACH)
            line = text[low:end].rstrip(" \t\r\\")
            if line.endswith(">"):
                line = _LINE_BREAK.sub("", line)
            word = line[line.rfind(" ") + 1 :]
            if word and word[-1] in _TOKEN_CHARACTERS and is_mixed_word(word):
                gap = _WRAPPED.match(text, low + len(line))
                if gap is not None:
                    yield gap
        start = end + 1
        end = text.find("\n", start)
