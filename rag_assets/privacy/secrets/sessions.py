"""Credentials held by people and browsers: session cookies, backup codes, recovery keys."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rag_assets.privacy.secrets.placeholders import is_placeholder, is_token_placeholder
from rag_assets.privacy.secrets.rules import Anchor, Rule
from rag_assets.privacy.secrets.spans import SecretSpan

_MOST_COOKIES = 40
_MOST_CODES = 30
_DISTINCT = 4
_COOKIE_LENGTH = 16
_COOKIE = re.compile(
    r"[ \t\"';:]*(?P<name>[\w.!#$%&*+^`|~-]{1,80})=(?P<value>[^\s;,\"'<>`]{1,4096})"
)
_ATTRIBUTES = frozenset("path domain expires max-age samesite secure httponly priority".split())  # noqa: SIM905
_TRACKERS = (
    "_ga",
    "_gid",
    "_fb",
    "_utm",
    "__utm",
    "ajs_",
    "optimizely",
    "consent",
    "theme",
    "lang",
    "locale",
    "tz",
)
_BEFORE_COOKIES = re.compile(
    r"(?:cookie[\"']?[ \t]*[:=,]|(?:-b|--cookie)(?:[ \t]+|=)(?=[\"']?[\w.!-]{1,80}=))[ \t]*[\"']?",
    re.IGNORECASE,
)

_CODE = r"(?:\d{4,5}[ -]\d{4,5}|\d{6,10}|(?=[a-z0-9-]{0,24}\d)[a-z0-9]{4,6}(?:-[a-z0-9]{4,6}){1,3}|(?=[a-z]{0,11}\d)[a-z0-9]{8,12}|(?=[A-Z]{0,11}\d)[A-Z0-9]{8,12})"
_CODES = re.compile(
    rf"(?P<gap>[ \t]*(?:\r?\n)?[ \t]*(?:[-*•][ \t]+|\d{{1,2}}[.)][ \t]+|[,;|/][ \t]*|[`\"'])*)(?P<code>{_CODE})(?![\w-])"
)
_INTRODUCED = re.compile(
    r"\w*(?:[ \t](?:for|of|für|von|vom|des|der)[ \t][^\n:]{1,48}|[ \t](?:are|sind|is|lauten)(?=[ \t:]))?(?P<colon>[ \t]*[:=]?)[ \t]*(?:\r?\n)?"
)
_VAULT = re.compile(
    r"[^\n]{0,40}?\n?[^\n]{0,24}?(?<![A-Z0-9-])(?P<code>[A-Z0-9]{4}(?:-[A-Z0-9]{4}){5})(?![\w-])"
)


def _cookies(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    """Find random values of cookies in headers, commands and scripts."""
    done = 0
    for anchor in anchors:
        before = _BEFORE_COOKIES.match(text, anchor.start) if anchor.start >= done else None
        at = before.end() if before is not None else 0
        for _ in range(_MOST_COOKIES if before is not None else 0):
            found = _COOKIE.match(text, at)
            if found is None:
                break
            done = at = found.end()
            if _is_session(found["name"], found["value"]):
                yield SecretSpan(*found.span("value"), "session-cookie")
            if text[at : at + 1] != ";":
                break


def _is_session(name: str, value: str) -> bool:
    lowered = name.lower()
    if lowered in _ATTRIBUTES or lowered.startswith(_TRACKERS) or len(value) < _COOKIE_LENGTH:
        return False
    if is_placeholder(value) or is_token_placeholder(value) or value[0] in "$<{[(":
        return False
    return sum(map(str.isdigit, value)) > 1 and sum(map(str.isalpha, value)) > 1


def _codes(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    """Find the codes that are listed after words such as `backup codes`."""
    for anchor in anchors:
        introduced = _INTRODUCED.match(text, anchor.end)
        at = introduced.end() if introduced is not None else anchor.end
        found: list[re.Match[str]] = []
        while len(found) < _MOST_CODES and (code := _CODES.match(text, at)):
            found.append(code)
            at = code.end()
            if text[at : at + 1] in "`\"'":
                at += 1
        if len(found) > 1 or (found and introduced is not None and introduced["colon"].strip()):
            for code in found:
                if len(set(code["code"])) >= _DISTINCT:
                    yield SecretSpan(*code.span("code"), "backup-code")


def _recovery_keys(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    """Find FileVault's recovery keys: six groups of four."""
    for anchor in anchors:
        found = _VAULT.match(text, anchor.end)
        if found is not None and not is_token_placeholder(found["code"]):
            yield SecretSpan(*found.span("code"), "recovery-key")


RULES: Sequence[Rule] = (
    Rule(("cookie", "-b '", "-b \"", "-b "), _cookies),
    Rule(
        ("backup code", "backup-code", "backupcode", "recovery code", "recovery-code", "scratch code",
         "wiederherstellungscode", "ersatzcode", "sicherungscode", "notfallcode", "emergency code",
         "codes de secours", "códigos de respaldo"),
        _codes,
    ),
    Rule(("filevault", "recovery key", "wiederherstellungsschlüssel"), _recovery_keys),
)  # fmt: skip
