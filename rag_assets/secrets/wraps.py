"""Credentials that a layout broke: private keys over many lines, tokens wrapped in two.

Text taken from a page has soft hyphens, line breaks, or a blank where a line ended.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from rag_assets.secrets.rules import (
    PRIVATE_KEY,
    RSA_LINE,
    TOKEN_RULES,
    SecretSpan,
    TokenRule,
    starts_token,
)

_KEY_REACH = 16_384
_LINE_REACH = 1_000
_PIECE_REACH = 1_024
_WRAPPED_REACH = 4_096
_END = re.compile(r"END (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?[-‐-―]{0,8}")
_DASHES = "-‐‑‒–—―"
_KEY_BODY = re.compile(
    r"(?: BLOCK)?[-‐-―]{0,8}"
    r"(?:(?:[\s>|\"'+,\xad]|\\[nr])*"
    r"(?:[A-Za-z0-9+/=]{16,}|(?:Proc-Type|DEK-Info|Version): ?[^\n]{0,80}))*"
    r"(?:\r?\n[ \t>]*[A-Za-z0-9+/]{1,64}={0,2}(?=\r?\n|$))?"
)
_INVISIBLE = "\xad\u200b\u200c\u200d\u2060\ufeff"
_BREAK = re.compile(rf"[{_INVISIBLE}]*(?:[ \t]*\r?\n[ \t>|]*|[ ])?")
_PIECE = re.compile(r"[A-Za-z0-9_.-]+")
_MARKUP = re.compile(r"[\s>#*+-]*")


def private_keys(text: str) -> Iterator[SecretSpan]:
    """Each private key from its first dash to its END line, or as far as base64 goes."""
    done = 0
    for begin in PRIVATE_KEY.finditer(text):
        if begin.start() < done:
            continue
        start = begin.start()
        while start and text[start - 1] in _DASHES:
            start -= 1
        done = _key_end(text, begin.end())
        yield SecretSpan(start, done, "private-key")


def _key_end(text: str, after: int) -> int:
    reach = after + _KEY_REACH
    following = PRIVATE_KEY.search(text, after, reach)
    end = _END.search(text, after, following.start() if following else reach)
    if end is not None:
        return end.end()
    body = _KEY_BODY.match(text, after, reach)
    return body.end() if body else after


def rsa_lines(text: str) -> Iterator[SecretSpan]:
    """Every line that says BEGIN RSA, without the markup it starts with."""
    done = 0
    for found in RSA_LINE.finditer(text):
        if found.start() < done:
            continue
        low = max(done, found.start() - _LINE_REACH)
        start = max(low, text.rfind("\n", low, found.start()) + 1)
        end = text.find("\n", found.end(), found.end() + _LINE_REACH)
        done = end if end >= 0 else min(len(text), found.end() + _LINE_REACH)
        markup = _MARKUP.match(text, start, found.start())
        yield SecretSpan(markup.end() if markup else start, done, "private-key")


def tokens(text: str) -> Iterator[SecretSpan]:
    """Tokens known by their prefix, also where a line break or a soft hyphen runs through."""
    for rule in TOKEN_RULES:
        done = 0
        for prefix in rule.prefix.finditer(text):
            start = prefix.start()
            if start < done or not starts_token(text, start):
                continue
            end = _token_end(rule, text, start)
            if end is not None:
                done = end
                yield SecretSpan(start, end, rule.name)
            elif run := rule.run.match(text, start):
                done = run.end()


def _token_end(rule: TokenRule, text: str, start: int) -> int | None:
    whole = rule.token.match(text, start)
    end = whole.end() if whole is not None and rule.accepts(whole[0]) else None
    stop = end if end is not None else _piece_end(text, start)
    if not _goes_on(rule, text, stop):
        return end
    joined, offsets = _unwrapped(rule, text, start)
    match = rule.token.match(joined)
    if match is None or not rule.accepts(match[0]) or not any(map(str.isdigit, match[0])):
        return end
    return max(end or 0, offsets[match.end() - 1] + 1)


def _piece_end(text: str, start: int) -> int:
    piece = _PIECE.match(text, start, start + _PIECE_REACH)
    return piece.end() if piece else start


def _goes_on(rule: TokenRule, text: str, at: int) -> bool:
    gap = _BREAK.match(text, at)
    return gap is not None and gap.end() > at and _continues(rule, text, gap)


def _continues(rule: TokenRule, text: str, gap: re.Match[str]) -> bool:
    """Whether what follows a gap belongs to the token.

    After an invisible mark anything does, else only what no word of a language looks like.
    Another token's prefix never does.
    """
    piece = _PIECE.match(text, gap.end(), gap.end() + _PIECE_REACH)
    if piece is None or rule.prefix.match(text, gap.end()):
        return False
    if not gap[0].strip(_INVISIBLE):
        return True
    word = piece[0]
    mixed = any(c.isdigit() for c in word) and any(c.isalpha() for c in word)
    return mixed or (not word.isupper() and any(c.isupper() for c in word[1:]))


def _unwrapped(rule: TokenRule, text: str, start: int) -> tuple[str, list[int]]:
    """Put a token's pieces together, and say for each character where it came from."""
    joined: list[str] = []
    offsets: list[int] = []
    at = start
    while piece := _PIECE.match(text, at, min(at + _PIECE_REACH, start + _WRAPPED_REACH)):
        joined.append(piece[0])
        offsets.extend(range(*piece.span()))
        gap = _BREAK.match(text, piece.end())
        if gap is None or gap.end() == piece.end() or not _continues(rule, text, gap):
            break
        at = gap.end()
    return "".join(joined), offsets
