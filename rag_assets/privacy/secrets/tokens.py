"""Tokens with a known prefix, `ghp_…`, `sk_live_…`, even if a layout wrapped them.

Text taken from a page may have soft hyphens, line breaks, or a space at a former line end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rag_assets.privacy.secrets.rules import Anchor
from rag_assets.privacy.secrets.spans import SecretSpan
from rag_assets.privacy.secrets.values import HOST_NAME, is_token_body

_PIECE_REACH = 1_024
_WRAPPED_REACH = 4_096
_INVISIBLE = "\xad\u200b\u200c\u200d\u2060\ufeff"
_NAME_OF_VALUE = re.compile(
    r"[A-Za-z]{1,64}(?:-[A-Za-z]{1,64}){0,8}(?:[ \t]{0,8}[:=][ \t]{1,8}\S|=[A-Za-z])"
)
_BREAK = re.compile(rf"[{_INVISIBLE}]*(?:[ \t]*\\?\r?\n[ \t>|]*|[ ])?")
_PIECE = re.compile(r"[A-Za-z0-9_.-]+")
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")
_ESCAPED = re.compile(r"\\(?:[nrtbf]|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2})$")
_ESCAPE_REACH = 6


@dataclass(frozen=True, slots=True)
class TokenKind:
    """A kind of token.

    Attributes:
        name: its name in reports.
        prefix: the literal at its start.
        body: pattern of the part after the prefix.
        run: the characters that a token may have. If a candidate does not match, such characters
            are skipped, so that a text of only prefixes is read once instead of once for each
            prefix.
        accepts: validates the body, if the pattern alone is not enough.
    """

    name: str
    prefix: re.Pattern[str]
    body: re.Pattern[str]
    run: re.Pattern[str]
    accepts: Callable[[str], bool] = is_token_body

    def match(self, text: str, start: int) -> int | None:
        """Return the end of the token that starts here; None if no token does."""
        prefix = self.prefix.match(text, start)
        if prefix is None:
            return None
        body = self.body.match(text, prefix.end())
        return body.end() if body is not None and self.accepts(body[0]) else None

    def rejected_end(self, text: str, start: int) -> int:
        """Return the end of a placeholder with the form of this kind.

        `start` for any other text.
        """
        prefix = self.prefix.match(text, start)
        body = self.body.match(text, prefix.end()) if prefix is not None else None
        return body.end() if body is not None else start


def starts_token(text: str, start: int) -> bool:
    """Return whether a token may start here, not inside a longer word."""
    if start == 0 or text[start - 1] not in _LETTERS:
        return True
    return _ESCAPED.search(text, max(0, start - _ESCAPE_REACH), start) is not None


def find_tokens(kind: TokenKind, text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    """Find the tokens of one kind, anchored at its prefix."""
    done = 0
    for start, _ in anchors:
        if start < done or not kind.prefix.match(text, start) or not starts_token(text, start):
            continue
        end = _token_end(kind, text, start)
        if end is not None:
            done = end
            yield SecretSpan(start, _without_markup(text, start, end), kind.name)
        elif run := kind.run.match(text, start):
            done = max(run.end(), kind.rejected_end(text, start))


def _without_markup(text: str, start: int, end: int) -> int:
    """Return the end of a token without trailing markup that closes its emphasis."""
    while start and text[end - 1] in "_-" and text[start - 1] == text[end - 1]:
        start, end = start - 1, end - 1
    return end


def _token_end(kind: TokenKind, text: str, start: int) -> int | None:
    end = kind.match(text, start)
    stop = end if end is not None else _piece_end(text, start)
    if not _continues_at(kind, text, stop) or (end is not None and _names_a_value(text, stop)):
        return end
    joined, offsets = _unwrapped(kind, text, start)
    match = kind.match(joined, 0)
    if match is None or not any(map(str.isdigit, joined[:match])):
        return end
    return max(end or 0, offsets[match - 1] + 1)


def _piece_end(text: str, start: int) -> int:
    piece = _PIECE.match(text, start, start + _PIECE_REACH)
    return piece.end() if piece else start


def _names_a_value(text: str, at: int) -> bool:
    """Return whether a word after a gap is the label of a value, as in `X-Api-Key: …`."""
    gap = _BREAK.match(text, at)
    return gap is not None and _NAME_OF_VALUE.match(text, gap.end()) is not None


def _continues_at(kind: TokenKind, text: str, at: int) -> bool:
    gap = _BREAK.match(text, at)
    return gap is not None and gap.end() > at and _continues(kind, text, gap)


def _continues(kind: TokenKind, text: str, gap: re.Match[str]) -> bool:
    """Return whether the text after a gap belongs to the token.

    After an invisible character, any text does. After another gap, only text that is neither an
    ordinary word nor a host does. The prefix of another token never does.
    """
    piece = _PIECE.match(text, gap.end(), gap.end() + _PIECE_REACH)
    if piece is None or kind.prefix.match(text, gap.end()):
        return False
    if not gap[0].strip(_INVISIBLE):
        return True
    if HOST_NAME.match(text, gap.end()) is not None:
        return False
    word = piece[0]
    mixed = any(c.isdigit() for c in word) and any(c.isalpha() for c in word)
    return mixed or (not word.isupper() and any(c.isupper() for c in word[1:]))


def _unwrapped(kind: TokenKind, text: str, start: int) -> tuple[str, list[int]]:
    """Join the pieces of a token, with the offset of each character."""
    joined: list[str] = []
    offsets: list[int] = []
    at = start
    while piece := _PIECE.match(text, at, min(at + _PIECE_REACH, start + _WRAPPED_REACH)):
        joined.append(piece[0])
        offsets.extend(range(*piece.span()))
        gap = _BREAK.match(text, piece.end())
        if gap is None or gap.end() == piece.end() or not _continues(kind, text, gap):
            break
        if _names_a_value(text, piece.end()) and kind.match("".join(joined), 0) is not None:
            break
        at = gap.end()
    return "".join(joined), offsets
