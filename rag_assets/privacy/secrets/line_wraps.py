"""Joins lines at which a layout wrapped a token."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from rag_assets.privacy.secrets.text_views import View, ViewBuilder, is_mixed_word
from rag_assets.privacy.secrets.values import HOST_NAME

_WRAPPED = re.compile(r"[ \t]*(?:<br ?/?>|\\)?\r?\n[ \t>|]*(?=[A-Za-z0-9+/=_~-])")
# Starts with a character set, so that the search skips other characters quickly.
_LINE_END = re.compile(
    r"([\dA-Z](?:(?<![A-Z])|(?<=[a-z][A-Z]))[A-Za-z0-9+/=_~.:-]{0,240})"
    r"[ \t]*(?:<br ?/?>|\\)?\r?\n"
)
_WORD = re.compile(r"[A-Za-z0-9+/=_~.:-]+")
_PIECE_RIGHT = re.compile(r"[A-Za-z0-9+/=_~.-]*")
_VALUE_FOLLOWS = re.compile(r"[ \t]*[:=][ \t]+\S")
_MOST_PIECES = 8
_REACH = 240


@dataclass(frozen=True, slots=True)
class Seam:
    """A position in a view at which two lines were joined.

    Attributes:
        at: offset in the view at which the second line starts.
        end: end of the second line's first word, which may continue a token.
        certain: whether that word cannot be an ordinary word.
        is_name: whether that word is a label of the value after it, or a host name; then it does
            not continue a token.
    """

    at: int
    end: int
    certain: bool
    is_name: bool


def joined(text: str) -> Iterator[tuple[View, list[Seam]]]:
    """Join lines across which a token may continue; yield views with their seams."""
    done = 0
    for gap in _gaps(text):
        if gap.start() < done:
            continue
        builder = ViewBuilder()
        start = max(text.rfind("\n", 0, gap.start()) + 1, gap.start() - _REACH)
        builder.copy(text[start : gap.start()], start)
        length = gap.start() - start
        seams: list[Seam] = []
        following: re.Match[str] | None = gap
        while following is not None and len(seams) < _MOST_PIECES:
            at = following.end()
            piece = _PIECE_RIGHT.match(text, at, at + _REACH)
            end = piece.end() if piece else at
            rest = text[at:end]
            certain = is_mixed_word(rest) and "=" not in rest.rstrip("=")
            builder.copy(text[at:end], at)
            is_host = HOST_NAME.match(text, at) is not None
            is_name = is_host or _VALUE_FOLLOWS.match(text, end) is not None
            seams.append(Seam(length, length + end - at, certain, is_name))
            length += end - at
            following = _WRAPPED.match(text, end) if certain else None
        done = at
        yield builder.view(), seams


def _gaps(text: str) -> Iterator[re.Match[str]]:
    """Find the line ends after a word that looks like a part of a token."""
    for found in _LINE_END.finditer(text):
        end = found.end(1)
        # Match backwards: a pattern for the end of a word would be tried from every start.
        word = _WORD.match(text[max(0, end - _REACH) : end][::-1])
        if word is not None and is_mixed_word(word[0][::-1]):
            gap = _WRAPPED.match(text, end)
            if gap is not None:
                yield gap
