"""Credentials next to a user's name: `log in as svc with X`, `jane.doe / X`, `WIFI:S:net;P:X;`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rag_assets.privacy.secrets.placeholders import is_placeholder
from rag_assets.privacy.secrets.rules import Anchor, Rule
from rag_assets.privacy.secrets.spans import SecretSpan
from rag_assets.privacy.secrets.values import is_bare_password, is_mixed, is_strong

_REACH = 160
_LEAST_MIXED = 8
_VALUE = r"[*_`\"'“„]{0,2}(?P<value>[^\s\"'`<>|“”„]{6,128})"
_NOUN = r"(?:the[ \t]|dem[ \t]|das[ \t])?(?:password[ \t]|passwort[ \t]|kennwort[ \t]|pass[ \t]|pw[ \t]|passphrase[ \t])?:?[ \t]?"
_AS_USER = re.compile(
    r"[^\n]{0,24}?\b(?:as|als|user|benutzer|mit|with|and|und)[ \t](?:user[ \t]|benutzer[ \t]|the[ \t])?[\w.@\\+-]{2,64},?[ \t]"
    r"(?:with|using|mit|and|und|via)[ \t]" + _NOUN + _VALUE,
    re.IGNORECASE,
)
_SLASHED = re.compile(r"[ \t]/[ \t]" + _VALUE)
_USER_BEFORE = re.compile(
    r"(?:^|[\s:(*`\"'])[*_`]{0,2}(?P<user>[A-Za-z][\w.+-]{1,63}(?:@[\w.-]{3,64})?)[*_`]{0,2}\Z"
)
_MAIL = re.compile(r"@(?:[a-z0-9-]{1,63}\.){1,5}[a-z]{2,12}:" + _VALUE)
_NUMBERED = re.compile(r"[A-Za-z]{3,24}[-_.!]\d{2,4}[a-z!#?]")
_QUALIFIED = re.compile(r"(?:[A-Za-z_]\w*\.){1,8}[A-Za-z_]\w*[a-zA-Z_]")
"""A qualified name in code, such as `client.pool.AsyncPool`."""
_WIFI = re.compile(r"WIFI:(?:[STHRK]:[^;\n]{0,80};){0,5}?P:(?P<value>(?:[^;\n\\]|\\.){6,80});")


def stands_alone(value: str) -> bool:
    """Return whether a value next to a user's name looks generated."""
    if is_placeholder(value) or value[0] in "/-.(<{$@" or "://" in value or "/" in value:
        return False
    if _QUALIFIED.fullmatch(value):
        return False
    return is_bare_password(value) and (
        is_strong(value)
        or (
            len(value) >= _LEAST_MIXED
            and (is_mixed(value) or _NUMBERED.fullmatch(value) is not None)
        )
    )


def _span(found: re.Match[str]) -> SecretSpan:
    start, end = found.span("value")
    while end > start + 1 and found.string[end - 1] in ".,;:)*_":
        end -= 1
    return SecretSpan(start, end, "login-secret")


def _users(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    for anchor in anchors:
        found = _AS_USER.match(text, anchor.end, anchor.end + _REACH)
        if found is not None and stands_alone(text[slice(*_bounds(found))]):
            yield _span(found)


def _before(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    """Find X in sentences with the verb at the end, such as `als gast mit X einloggen`."""
    for anchor in anchors:
        low = max(0, anchor.start - _REACH)
        begin = max(text.rfind("\n", low, anchor.start) + 1, low)
        for found in _AS_USER.finditer(text, begin, anchor.start):
            if stands_alone(text[slice(*_bounds(found))]):
                yield _span(found)


def _pairs(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    for anchor in anchors:
        found = _SLASHED.match(text, anchor.start)
        if found is None or not stands_alone(text[slice(*_bounds(found))]):
            continue
        if _USER_BEFORE.search(text, max(0, anchor.start - 132), anchor.start):
            yield _span(found)


def _mails(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    for anchor in anchors:
        found = _MAIL.match(text, anchor.start)
        if found is not None and stands_alone(text[slice(*_bounds(found))]):
            yield _span(found)


def _wifi(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    for anchor in anchors:
        found = _WIFI.match(text, anchor.start)
        if (
            found is not None
            and not is_placeholder(found["value"])
            and not found["value"].isalpha()
        ):
            yield SecretSpan(*found.span("value"), "wifi-password")


def _bounds(found: re.Match[str]) -> tuple[int, int]:
    span = _span(found)
    return span.start, span.end


RULES: Sequence[Rule] = (
    Rule(
        ("log in", "login", "logged in", "log on", "logon", "sign in", "signed in", "connect as", "get in",
         "melde dich", "anmelden", "einloggen", "logge dich", "ssh "),
        _users,
    ),
    Rule(("anmelden", "einloggen", "log in", "login", "sign in"), _before),
    Rule((" / ",), _pairs),
    Rule(("@",), _mails),
    Rule(("wifi:",), _wifi),
)  # fmt: skip
