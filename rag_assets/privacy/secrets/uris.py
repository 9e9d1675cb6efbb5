"""Credentials in addresses and in the headers of requests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rag_assets.privacy.secrets.placeholders import is_placeholder
from rag_assets.privacy.secrets.rules import Anchor, Rule
from rag_assets.privacy.secrets.spans import SecretSpan
from rag_assets.privacy.secrets.values import is_alphabetic_password, is_key, is_token_body
from rag_assets.privacy.secrets.vocabulary import is_predicate

_REACH = 600
_SHORTEST = 3
_TOKEN_LENGTH = 8
_PASSWORD_WORDS = frozenset({"x-oauth-basic", "port", "oauth2", "[password]"})
# Match the last @ before the path; a slash belongs to a password only if no port ends there.
_CREDENTIALS = re.compile(
    r"(?P<user>[^\s/:@\"'<>`|\\?#]{0,128}):(?!//)(?P<password>(?!\d{1,5}/)[^\s\"'<>`|]{1,256})"
    r"@(?=[\w\[.-])"
)
_SPACED = re.compile(
    r"(?P<user>[\w.%+-]{1,64}):(?P<password>[^\s\"'<>`|@/]{1,64}(?: [^\s\"'<>`|@/]{1,64}){1,3})@(?=\w)"
)
_PLAIN_USER = re.compile(r"(?P<user>[A-Za-z0-9_-]{20,255})@(?=[\w\[])")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,30}\Z")

_AUTHORIZATION = re.compile(
    r"(?i:authorization)[\"'`\]*_ \t]{0,4}(?:[:=]|=>|,(?=[ \t]{0,4}[\"'`]))[\"'`* \t]{0,4}"
    r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9_-]{2,24})[ \t]{1,3})?[\"'`]?(?P<value>[^\s\"'`<>,;|)]{4,4096})"
)
_SCHEMES = frozenset(
    {"bearer", "basic", "token", "apikey", "api-key", "key", "digest", "negotiate"}
)
_SCHEME_VALUE = re.compile(
    r"(?:[Bb]earer|BEARER|[Bb]asic|BASIC)(?:[ \t]{1,3}|%20|\+)[\"'`]?(?P<value>[A-Za-z0-9+/_=.~-]{12,4096})"
)
_CALL = re.compile(r"[A-Za-z_][\w.]*\(")
_LINE_END = re.compile(r"[.\"'`)*_]*[ \t]*(?:[\r\n]|$)")
_NO_VALUE = frozenset({"bearer", "basic", "token", "digest", "negotiate", "apikey", "credentials"})


def _in_addresses(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    """Find the password in `scheme://user:password@host`, or a token in place of the user."""
    done = 0
    for anchor in anchors:
        if anchor.start < done or not _SCHEME.search(text, max(0, anchor.start - 32), anchor.start):
            continue
        found = _address(text, anchor.end)
        if found is not None:
            done = found.end
            yield found


def _address(text: str, at: int) -> SecretSpan | None:
    limit = at + _REACH
    found = _CREDENTIALS.match(text, at, limit) or _SPACED.match(text, at, limit)
    if found is not None:
        start, end = found.span("password")
        following = text.find("://", start, end)
        if following < 0 and _is_password(found["password"]):
            return SecretSpan(start, end, "uri-password")
        return None
    user = _PLAIN_USER.match(text, at, limit)
    if user is not None and is_token_body(user["user"]) and any(map(str.isdigit, user["user"])):
        return SecretSpan(*user.span("user"), "uri-token")
    return None


def _is_password(value: str) -> bool:
    if len(value) < _SHORTEST or value.lower() in _PASSWORD_WORDS or value.startswith("["):
        return False
    if value.isupper() and value.replace("_", "").isalpha():
        return False
    return not is_placeholder(value) and not value.isspace()


def _in_headers(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    """Find the value of `Authorization` after its scheme, unless it is a placeholder."""
    for anchor in anchors:
        found = _AUTHORIZATION.match(text, anchor.start)
        if found is None:
            continue
        value = found["value"].rstrip(".*_")
        if value.lower().startswith("credential=") or _CALL.match(value):
            continue
        known = (found["scheme"] or "").lower() in _SCHEMES
        if value.lower() in _NO_VALUE or is_placeholder(value) or value[0] in "$({[+&/.%":
            continue
        if not (is_key(value, quoted=True) or (known and _is_opaque(text, found.end(), value))):
            continue
        start = found.start("value")
        yield SecretSpan(start, start + len(value), "authorization-header")


def _is_opaque(text: str, end: int, value: str) -> bool:
    """Return whether a value after a known scheme is random, not a word that describes a value."""
    letters = value.replace("-", "").replace("_", "")
    if not letters.isalpha():
        return True
    if not (letters.islower() or letters.isupper() or letters.istitle()):
        return True
    ends = _LINE_END.match(text, end) is not None
    return ends and is_alphabetic_password(value) and not is_predicate(value)


def _after_schemes(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    """Find a random value after `Bearer` or `Basic`."""
    for anchor in anchors:
        found = _SCHEME_VALUE.match(text, anchor.start)
        if found is None:
            continue
        value = found["value"].rstrip(".-_")
        digits = any(map(str.isdigit, value)) or value.endswith("=")
        if len(value) >= _TOKEN_LENGTH and digits and is_token_body(value.rstrip("=")):
            yield SecretSpan(
                found.start("value"), found.start("value") + len(value), "bearer-token"
            )


RULES: Sequence[Rule] = (
    Rule(("://",), _in_addresses),
    Rule(("authorization",), _in_headers),
    Rule(("bearer", "basic"), _after_schemes),
)
