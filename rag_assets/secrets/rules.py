"""The rules of our own: credentials whose shape is known, and those that only a name gives away.

Each expression starts with a literal, which the regex engine finds many times faster than a
leading look-behind; the character before a match is looked at afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rag_assets.secrets.placeholders import is_mixed, is_placeholder, is_random

RULES_REVISION = 2
"""Raised by hand whenever a rule or a check below changes its meaning."""

_AWS_REACH = 120
_AWS_SLASHES = 4
_ASSIGNED_MAX = 256
_PASSWORD_LENGTH = 6
_KEY_LENGTH = 16
_PATH_STARTS = ("/", "./", "../", "~/")
_TOKEN_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")


@dataclass(frozen=True, slots=True)
class SecretSpan:
    """Where a credential stands, as character offsets (half open), and which rule found it."""

    start: int
    end: int
    rule: str


@dataclass(frozen=True, slots=True)
class TokenRule:
    """A credential that its prefix gives away.

    Attributes:
        name: what reports call it.
        prefix: the literal beginning; searched for first.
        token: the whole credential.
        run: the characters that a token which does not match is skipped over by, so that a text
            of nothing but prefixes is read once and not once per prefix.
        accepts: a last look at what matched, where the shape alone says too little.
    """

    name: str
    prefix: re.Pattern[str]
    token: re.Pattern[str]
    run: re.Pattern[str]
    accepts: Callable[[str], bool] = lambda _token: True


def _rule(
    name: str, prefix: str, body: str, run: str, accepts: Callable[[str], bool] | None = None
) -> TokenRule:
    parts = (re.compile(prefix), re.compile(prefix + body), re.compile(run))
    return TokenRule(name, *parts, accepts) if accepts else TokenRule(name, *parts)


_PLAIN_OPENAI = re.compile(r"sk-[A-Za-z0-9]{20,}")


def _openai_like(token: str) -> bool:
    # The hyphenated forms look like any hyphenated name until they mix digits and capitals.
    return _PLAIN_OPENAI.search(token) is not None or is_random(token[3:])


_WORD = "[A-Za-z0-9]*"
_DASHED = "[A-Za-z0-9_-]*"
TOKEN_RULES = (
    _rule("openai-key", "sk-", r"[A-Za-z0-9_-]{20,}", _DASHED, _openai_like),
    _rule("github-token", "gh[pousr]_", r"[A-Za-z0-9]{20,}", _WORD),
    _rule("github-pat", "github_pat_", r"[A-Za-z0-9_]{20,}", _WORD),
    _rule("aws-access-key-id", "A[KS]IA", r"[A-Z0-9]{16}", _WORD),
    _rule("slack-token", "xox[abeoprs]-", r"[A-Za-z0-9-]{10,}", _WORD),
    _rule("jwt", "eyJ", r"[\w-]{5,}\.[\w-]{5,}\.[\w-]*".replace(r"\w", "A-Za-z0-9_"), _DASHED),
)

PRIVATE_KEY = re.compile(r"BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY")
RSA_LINE = re.compile("BEGIN RSA")

_AWS_WORD = re.compile(
    r"[aA][wW][sS]|[sS][eE][cC][rR][eE][tT][ _-]?[aA][cC][cC][eE][sS][sS]|A[KS]IA"
)
_AWS_SECRET = re.compile(r"[A-Za-z0-9/+]{40,}={0,2}")
_AWS_SECRET_LENGTH = 40

_ASSIGNED_NAME = re.compile(
    r"[pP][aA][sS][sS](?:[wW][oO]?[rR]?[dD]|[pP][hH][rR][aA][sS][eE])"
    r"|[pP][wW][dD]"
    r"|[aA][pP][iI][_-]?[kK][eE][yY]"
    r"|[sS][eE][cC][rR][eE][tT](?:[_-]?[kK][eE][yY])?"
    r"|[tT][oO][kK][eE][nN]"
)
_ASSIGNED_VALUE = re.compile(
    r"""["'`]?[ \t]{0,8}(?::=|=>|[:=])[ \t]{0,8}"""
    r"""(?:"(?P<double>[^"\s]{4,256})"|'(?P<single>[^'\s]{4,256})'|(?P<bare>[^\s"'`,;<>|]{6,256}))"""
)
_CODE = re.compile(r"[A-Za-z_][\w.]*[(\[]|[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+$|[({\[&*!/]")


def starts_token(text: str, start: int) -> bool:
    """Whether a token may begin here: nothing of a longer word stands before it."""
    return start == 0 or text[start - 1] not in _TOKEN_CHARACTERS


def assigned(text: str) -> Iterator[SecretSpan]:
    """`password = literal`: the value, where it is one and no placeholder, type or expression."""
    done = 0
    for name in _ASSIGNED_NAME.finditer(text):
        if name.start() < done:
            continue
        value = _ASSIGNED_VALUE.match(text, name.end(), name.end() + _ASSIGNED_MAX + 24)
        if value is None or value.lastgroup is None:
            continue
        start, end = value.span(value.lastgroup)
        done = end
        literal = value[value.lastgroup]
        if is_secret_value(name[0].lower(), literal, quoted=value.lastgroup != "bare"):
            yield SecretSpan(start, end, "assigned-secret")


def is_secret_value(name: str, value: str, *, quoted: bool) -> bool:
    """Whether what a name such as `password` is given is a credential.

    Args:
        name: the naming word in small letters.
        value: what it is given.
        quoted: whether it stood in quotation marks, so that it is no code.
    """
    if is_placeholder(value) or value.startswith(_PATH_STARTS):
        return False
    if not name.startswith(("pass", "pwd")):
        return len(value) >= _KEY_LENGTH and is_random(value)
    if quoted:
        return True
    value = value.rstrip(".)")
    if _CODE.match(value) or "://" in value or len(value) < _PASSWORD_LENGTH:
        return False
    return any(c.isdigit() for c in value) and any(c.isalpha() for c in value)


def aws_secrets(text: str) -> Iterator[SecretSpan]:
    """Forty characters of base64 standing alone, near a word about AWS."""
    for low, high in _aws_windows(text):
        for found in _AWS_SECRET.finditer(text, low, high):
            start, end = found.span()
            alone = end - start == _AWS_SECRET_LENGTH and starts_token(text, start)
            if alone and is_mixed(found[0]) and found[0].count("/") <= _AWS_SLASHES:
                yield SecretSpan(start, end, "aws-secret-access-key")


def _aws_windows(text: str) -> Iterator[tuple[int, int]]:
    """Where to look, overlapping neighbourhoods joined so that no text is searched twice."""
    low = high = 0
    for word in _AWS_WORD.finditer(text):
        begin, finish = max(0, word.start() - _AWS_REACH), word.end() + _AWS_REACH
        if begin > high:
            if high:
                yield low, high
            low = begin
        high = finish
    if high:
        yield low, min(high, len(text))
