"""Tokens of services: with a known prefix, after a literal, or with a pattern inside.

token_kinds.toml has a row for each kind, and this module reads it. Kinds that need more than a
pattern follow below the table's checks.

A token with a prefix, such as `ghp_…`, is also found if a layout wrapped it. Text taken from a page
may have soft hyphens, line breaks, or a space at a former line end.
"""

from __future__ import annotations

import base64
import binascii
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from rag_assets.privacy.secrets.placeholders import (
    DOCUMENTED,
    is_encoded_placeholder,
    is_published_example,
    is_token_placeholder,
)
from rag_assets.privacy.secrets.rules import Anchor, Rule
from rag_assets.privacy.secrets.spans import SecretSpan
from rag_assets.privacy.secrets.values import HOST_NAME, is_mixed, is_random, is_token_body

_TABLE: Final = Path(__file__).with_name("token_kinds.toml")
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
_WORD_RUN = re.compile("[A-Za-z0-9]*")
_DASHED_RUN = re.compile("[A-Za-z0-9_-]*")


@dataclass(frozen=True, slots=True)
class TokenKind:
    """A kind of token."""

    name: str
    prefix: re.Pattern[str]
    body: re.Pattern[str]
    run: re.Pattern[str]
    """The characters that a token may have. If a candidate does not match, such characters are
    skipped, so that a text of only prefixes is read once instead of once for each prefix."""
    accepts: Callable[[str], bool] = is_token_body
    """Validates the body, if the pattern alone is not enough."""

    def match(self, text: str, start: int) -> int | None:
        """Return the end of the token that starts here; None if no token of this kind does."""
        prefix = self.prefix.match(text, start)
        if prefix is None:
            return None
        body = self.body.match(text, prefix.end())
        return body.end() if body is not None and self.accepts(body[0]) else None

    def find_placeholder_end(self, text: str, start: int) -> int:
        """Return the end of a placeholder that starts here; `start` if none does."""
        prefix = self.prefix.match(text, start)
        body = self.body.match(text, prefix.end()) if prefix is not None else None
        return body.end() if body is not None else start


def can_start_token(text: str, start: int) -> bool:
    """Return whether a token may start at this offset, because it is not inside a longer word."""
    if start == 0 or text[start - 1] not in _LETTERS:
        return True
    return _ESCAPED.search(text, max(0, start - _ESCAPE_REACH), start) is not None


def find_tokens(kind: TokenKind, text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    """Find the tokens of one kind, which start at the anchors."""
    done = 0
    for start, _ in anchors:
        if start < done or not kind.prefix.match(text, start) or not can_start_token(text, start):
            continue
        end = _find_token_end(kind, text, start)
        if end is not None:
            done = end
            yield SecretSpan(start, _find_end_before_markup(text, start, end), kind.name)
        elif run := kind.run.match(text, start):
            done = max(run.end(), kind.find_placeholder_end(text, start))


def _find_end_before_markup(text: str, start: int, end: int) -> int:
    """Return the end of a token without trailing `_` or `-` that closes an emphasis around it."""
    while start and text[end - 1] in "_-" and text[start - 1] == text[end - 1]:
        start, end = start - 1, end - 1
    return end


def _find_token_end(kind: TokenKind, text: str, start: int) -> int | None:
    end = kind.match(text, start)
    piece = _PIECE.match(text, start, start + _PIECE_REACH)
    stop = end if end is not None else piece.end() if piece else start
    gap = _BREAK.match(text, stop)
    is_continued = gap is not None and gap.end() > stop and _is_continued(kind, text, gap)
    if not is_continued or (end is not None and _is_label(text, stop)):
        return end
    joined, offsets = _unwrap(kind, text, start)
    match = kind.match(joined, 0)
    if match is None or not any(map(str.isdigit, joined[:match])):
        return end
    return max(end or 0, offsets[match - 1] + 1)


def _is_label(text: str, at: int) -> bool:
    """Return whether the word after a gap labels a value, as in `X-Api-Key: …`."""
    gap = _BREAK.match(text, at)
    return gap is not None and _NAME_OF_VALUE.match(text, gap.end()) is not None


def _is_continued(kind: TokenKind, text: str, gap: re.Match[str]) -> bool:
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


def _unwrap(kind: TokenKind, text: str, start: int) -> tuple[str, list[int]]:
    """Return the joined pieces of a token that starts here, and the offset of each character."""
    joined: list[str] = []
    offsets: list[int] = []
    at = start
    while piece := _PIECE.match(text, at, min(at + _PIECE_REACH, start + _WRAPPED_REACH)):
        joined.append(piece[0])
        offsets.extend(range(*piece.span()))
        gap = _BREAK.match(text, piece.end())
        if gap is None or gap.end() == piece.end() or not _is_continued(kind, text, gap):
            break
        if _is_label(text, piece.end()) and kind.match("".join(joined), 0) is not None:
            break
        at = gap.end()
    return "".join(joined), offsets


def _find_around(
    name: str,
    before: re.Pattern[str],
    after: re.Pattern[str],
    reach: int,
    text: str,
    anchors: Sequence[Anchor],
) -> Iterator[SecretSpan]:
    for anchor in anchors:
        end = after.match(text, anchor.start)
        if end is None:
            continue
        start = before.search(text[max(0, anchor.start - reach) : anchor.start])
        if start is None:
            continue
        first = anchor.start - len(start[0])
        if is_token_body(text[first : end.end()]):
            yield SecretSpan(first, end.end(), name)


def _find_value(
    name: str,
    pattern: re.Pattern[str],
    accepts: Callable[[str], bool],
    text: str,
    anchors: Sequence[Anchor],
) -> Iterator[SecretSpan]:
    done = 0
    for anchor in anchors:
        match = pattern.match(text, anchor.start) if anchor.start >= done else None
        if match is not None and accepts(match[1]):
            done = match.end(1)
            yield SecretSpan(*match.span(1), name)


_PARTS_OF_BCRYPT = 3
_AWS_REACH = 120
_AWS_SLASHES = 6
_AWS_SECRET = re.compile(r"[A-Za-z0-9/+]{40,}={0,2}")
_AWS_SECRET_LENGTH = 40
_PLAIN_OPENAI = re.compile(r"[A-Za-z0-9]{20,}")


def _is_openai_body(body: str) -> bool:
    # Hyphenated tokens look like any hyphenated name unless they mix digits and capitals.
    return is_token_body(body) and (_PLAIN_OPENAI.search(body) is not None or is_random(body))


def _is_pair(encoded: str) -> bool:
    """Return whether base64 encodes `user:password`."""
    try:
        user, colon, password = base64.b64decode(encoded + "=" * (-len(encoded) % 4)).partition(
            b":"
        )
    except (binascii.Error, ValueError):
        return False
    is_pair = bool(user and colon and password) and (user + password).isascii()
    return is_pair and not is_encoded_placeholder(encoded)


def _is_hash(value: str) -> bool:
    """Return whether a hash is real, not a placeholder like `$2a$10$abcdefghijklmnopqrstuv…`."""
    salted = value.rpartition("$")[2] if value.count("$") > _PARTS_OF_BCRYPT else value
    return value.lower() not in DOCUMENTED and not is_token_placeholder(salted)


def _is_recovery_key(value: str) -> bool:
    """Return whether a recovery key is real: its groups differ, unlike `000000-000000-…`."""
    groups = value.split("-")
    return len(set(groups)) == len(groups) and any(len(set(group)) > 1 for group in groups)


CHECKS: Final[Mapping[str, Callable[[str], bool]]] = MappingProxyType(
    {
        "token body": is_token_body,
        "openai": _is_openai_body,
        "no placeholder": lambda body: not is_token_placeholder(body),
        "no published example": lambda body: not is_published_example(body.lower()),
        "digit": lambda body: any(map(str.isdigit, body)) and not is_token_placeholder(body),
        "mixed": lambda body: is_mixed(body) and is_token_body(body),
        "pair": _is_pair,
        "hash": lambda value: is_token_body(value) and _is_hash(value),
    }
)
"""Tests of tokens by their name in token_kinds.toml."""

_DISCORD = re.compile(r"[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,40}")


def _find_discord_tokens(text: str, _anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    for match in _DISCORD.finditer(text):
        if can_start_token(text, match.start()) and is_mixed(match[0]):
            yield SecretSpan(*match.span(), "discord-token")


def _find_aws_secrets(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    """Find a word of forty base64 characters near a word about AWS."""
    for low, high in _join_windows(anchors, len(text)):
        for match in _AWS_SECRET.finditer(text, low, high):
            start, end = match.span()
            alone = end - start == _AWS_SECRET_LENGTH and can_start_token(text, start)
            if not alone or is_token_placeholder(match[0]):
                continue
            if is_mixed(match[0]) and match[0].count("/") <= _AWS_SLASHES:
                yield SecretSpan(start, end, "aws-secret-access-key")


def _join_windows(anchors: Sequence[Anchor], length: int) -> Iterator[tuple[int, int]]:
    """Yield the text spans around anchors, joined if they overlap, so each is searched once."""
    low = high = 0
    for anchor in anchors:
        begin, finish = max(0, anchor.start - _AWS_REACH), anchor.end + _AWS_REACH
        if begin > high:
            if high:
                yield low, high
            low = begin
        high = finish
    if high:
        yield low, min(high, length)


_BASE32_WORD = re.compile(r"(?<![A-Za-z0-9])(?=[a-z]{0,50}[2-7])[a-z2-7]{52}(?![A-Za-z0-9])")


def _find_azure_devops_tokens(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    """Find 52 base32 characters near words about Azure DevOps."""
    for low, high in _join_windows(anchors, len(text)):
        for match in _BASE32_WORD.finditer(text, low, high):
            if is_token_body(match[0]):
                yield SecretSpan(*match.span(), "azure-devops-token")


_GROUP = 6
_BITLOCKER = re.compile(r"(?<![\d-])\d{6}(?:-\d{6}){7}(?![\d-])")


def _find_bitlocker_keys(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    """Find the recovery keys of BitLocker: eight groups of six digits."""
    for anchor in anchors:
        match = _BITLOCKER.match(text, max(0, anchor.start - _GROUP))
        if match is not None and _is_recovery_key(match[0]):
            yield SecretSpan(*match.span(), "bitlocker-key")


@cache
def read_token_rules() -> tuple[Rule, ...]:
    """Read the rules for tokens that can be recognized by their form alone."""
    table = tomllib.loads(_TABLE.read_text(encoding="utf-8"))
    return (
        *map(_build_prefixed_rule, table["prefixed"]),
        Rule(tuple(f"-{digit}" for digit in "0123456789"), _find_bitlocker_keys),
        Rule(
            ("aws", "amazon", "secret access", "secret_access", "secretaccess", "akia", "asia"),
            _find_aws_secrets,
        ),
        Rule((), _find_discord_tokens),
        Rule(
            ("azure", "devops", "visualstudio", "nuget", "ado ", "pat ", "pat:", "pat="),
            _find_azure_devops_tokens,
        ),
        *map(_build_value_rule, table["values"]),
        *map(_build_around_rule, table["around"]),
    )


def _build_prefixed_rule(row: Mapping[str, Any]) -> Rule:
    if "prefixes" in row:
        anchors: str = row["prefixes"].lower()
        prefix = f"(?:{'|'.join(map(re.escape, row['prefixes'].split()))})"
    else:
        anchors, prefix = row["anchors"], row["prefix"]
    run = _WORD_RUN if row.get("run") == "word" else _DASHED_RUN
    kind = TokenKind(row["kind"], re.compile(prefix), re.compile(row["body"]), run, _get_check(row))
    return Rule(tuple(anchors.split()), partial(find_tokens, kind))


def _build_value_rule(row: Mapping[str, Any]) -> Rule:
    find = partial(_find_value, row["kind"], re.compile(row["pattern"]), _get_check(row))
    return Rule(tuple(row["anchors"].split()), find)


def _build_around_rule(row: Mapping[str, Any]) -> Rule:
    before, after = re.compile(row["before"] + r"\Z"), re.compile(row["after"])
    find = partial(_find_around, row["kind"], before, after, row["reach"])
    return Rule(tuple(row["anchors"].split()), find)


def _get_check(row: Mapping[str, Any]) -> Callable[[str], bool]:
    return CHECKS[row.get("check", "token body")]
