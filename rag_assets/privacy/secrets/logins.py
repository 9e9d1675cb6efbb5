"""Credentials of people and clients: addresses, headers, users' names, cookies, backup codes.

Examples are `https://user:X@host`, `Authorization: Bearer X`, `jane.doe / X`, `Cookie: sid=X`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rag_assets.privacy.secrets.placeholders import (
    is_placeholder,
    is_predicate,
    is_token_placeholder,
)
from rag_assets.privacy.secrets.rules import Anchor, Rule, build_rule
from rag_assets.privacy.secrets.spans import SecretSpan
from rag_assets.privacy.secrets.values import (
    is_alphabetic_password,
    is_bare_password,
    is_key,
    is_mixed,
    is_strong,
    is_token_body,
)

_ADDRESS_REACH = 600
_MIN_PASSWORD_LENGTH = 3
_MIN_TOKEN_LENGTH = 8
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


def _find_in_addresses(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    """Find the password in `scheme://user:password@host`, or a token in place of the user."""
    done = 0
    for anchor in anchors:
        if anchor.start < done or not _SCHEME.search(text, max(0, anchor.start - 32), anchor.start):
            continue
        span = _find_in_address(text, anchor.end)
        if span is not None:
            done = span.end
            yield span


def _find_in_address(text: str, at: int) -> SecretSpan | None:
    limit = at + _ADDRESS_REACH
    match = _CREDENTIALS.match(text, at, limit) or _SPACED.match(text, at, limit)
    if match is not None:
        start, end = match.span("password")
        following = text.find("://", start, end)
        if following < 0 and _is_password(match["password"]):
            return SecretSpan(start, end, "uri-password")
        return None
    user = _PLAIN_USER.match(text, at, limit)
    if user is not None and is_token_body(user["user"]) and any(map(str.isdigit, user["user"])):
        return SecretSpan(*user.span("user"), "uri-token")
    return None


def _is_password(value: str) -> bool:
    if (
        len(value) < _MIN_PASSWORD_LENGTH
        or value.lower() in _PASSWORD_WORDS
        or value.startswith("[")
    ):
        return False
    if value.isupper() and value.replace("_", "").isalpha():
        return False
    return not is_placeholder(value) and not value.isspace()


def _accept_in_header(match: re.Match[str]) -> SecretSpan | None:
    """Return the value of `Authorization` after its scheme; None for a placeholder."""
    value = match["value"].rstrip(".*_")
    if value.lower().startswith("credential=") or _CALL.match(value):
        return None
    known = (match["scheme"] or "").lower() in _SCHEMES
    if value.lower() in _NO_VALUE or is_placeholder(value) or value[0] in "$({[+&/.%":
        return None
    if not (
        is_key(value, is_quoted=True) or (known and _is_opaque(match.string, match.end(), value))
    ):
        return None
    start = match.start("value")
    return SecretSpan(start, start + len(value), "authorization-header")


def _is_opaque(text: str, end: int, value: str) -> bool:
    """Return whether the value after a scheme is random, and not the description of a value."""
    letters = value.replace("-", "").replace("_", "")
    if not letters.isalpha():
        return True
    if not (letters.islower() or letters.isupper() or letters.istitle()):
        return True
    ends = _LINE_END.match(text, end) is not None
    return ends and is_alphabetic_password(value) and not is_predicate(value)


def _accept_after_scheme(match: re.Match[str]) -> SecretSpan | None:
    """Return a random value after `Bearer` or `Basic`."""
    value = match["value"].rstrip(".-_")
    digits = any(map(str.isdigit, value)) or value.endswith("=")
    if len(value) < _MIN_TOKEN_LENGTH or not digits or not is_token_body(value.rstrip("=")):
        return None
    start = match.start("value")
    return SecretSpan(start, start + len(value), "bearer-token")


_REACH = 160
_MIN_MIXED_LENGTH = 8
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


def _is_generated(value: str) -> bool:
    """Return whether a value next to a user's name looks generated."""
    if is_placeholder(value) or value[0] in "/-.(<{$@" or "://" in value or "/" in value:
        return False
    if _QUALIFIED.fullmatch(value):
        return False
    return is_bare_password(value) and (
        is_strong(value)
        or (
            len(value) >= _MIN_MIXED_LENGTH
            and (is_mixed(value) or _NUMBERED.fullmatch(value) is not None)
        )
    )


def _accept(match: re.Match[str]) -> SecretSpan | None:
    """Return the value of a match without punctuation; None if it does not look generated."""
    start, end = match.span("value")
    while end > start + 1 and match.string[end - 1] in ".,;:)*_":
        end -= 1
    is_credential = _is_generated(match.string[start:end])
    return SecretSpan(start, end, "login-secret") if is_credential else None


def _find_after_users(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    for anchor in anchors:
        match = _AS_USER.match(text, anchor.end, anchor.end + _REACH)
        span = _accept(match) if match is not None else None
        if span is not None:
            yield span


def _find_before_verbs(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    """Find the password X in sentences that end with the verb: `als gast mit X einloggen`."""
    for anchor in anchors:
        low = max(0, anchor.start - _REACH)
        begin = max(text.rfind("\n", low, anchor.start) + 1, low)
        for match in _AS_USER.finditer(text, begin, anchor.start):
            span = _accept(match)
            if span is not None:
                yield span


def _accept_after_user(match: re.Match[str]) -> SecretSpan | None:
    """Return the password X in `jane.doe / X`, if it is one."""
    start = match.start()
    is_user = _USER_BEFORE.search(match.string, max(0, start - 132), start)
    return _accept(match) if is_user else None


def _accept_wifi_password(match: re.Match[str]) -> SecretSpan | None:
    if is_placeholder(match["value"]) or match["value"].isalpha():
        return None
    return SecretSpan(*match.span("value"), "wifi-password")


_MAX_COOKIES = 40
_MAX_CODES = 30
_MIN_DISTINCT_CHARACTERS = 4
_MIN_COOKIE_LENGTH = 16
_COOKIE = re.compile(
    r"[ \t\"';:]*(?P<name>[\w.!#$%&*+^`|~-]{1,80})=(?P<value>[^\s;,\"'<>`]{1,4096})"
)
_ATTRIBUTES = frozenset("path domain expires max-age samesite secure httponly priority".split())  # noqa: SIM905
_TRACKERS = tuple(
    """_ga _gid _fb _utm __utm ajs_ optimizely consent theme lang locale tz""".split()  # noqa: SIM905
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


def _find_cookies(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    """Find random values of cookies in headers, commands and scripts."""
    done = 0
    for anchor in anchors:
        before = _BEFORE_COOKIES.match(text, anchor.start) if anchor.start >= done else None
        at = before.end() if before is not None else 0
        for _ in range(_MAX_COOKIES if before is not None else 0):
            match = _COOKIE.match(text, at)
            if match is None:
                break
            done = at = match.end()
            if _is_session(match["name"], match["value"]):
                yield SecretSpan(*match.span("value"), "session-cookie")
            if text[at : at + 1] != ";":
                break


def _is_session(name: str, value: str) -> bool:
    lowered = name.lower()
    if lowered in _ATTRIBUTES or lowered.startswith(_TRACKERS) or len(value) < _MIN_COOKIE_LENGTH:
        return False
    if is_placeholder(value) or is_token_placeholder(value) or value[0] in "$<{[(":
        return False
    return sum(map(str.isdigit, value)) > 1 and sum(map(str.isalpha, value)) > 1


def _find_codes(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    """Find the codes that are listed after words such as `backup codes`."""
    for anchor in anchors:
        introduced = _INTRODUCED.match(text, anchor.end)
        at = introduced.end() if introduced is not None else anchor.end
        codes: list[re.Match[str]] = []
        while len(codes) < _MAX_CODES and (code := _CODES.match(text, at)):
            codes.append(code)
            at = code.end()
            if text[at : at + 1] in "`\"'":
                at += 1
        if len(codes) > 1 or (codes and introduced is not None and introduced["colon"].strip()):
            for code in codes:
                if len(set(code["code"])) >= _MIN_DISTINCT_CHARACTERS:
                    yield SecretSpan(*code.span("code"), "backup-code")


def _find_recovery_keys(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    """Find FileVault's recovery keys: six groups of four."""
    for anchor in anchors:
        match = _VAULT.match(text, anchor.end)
        if match is not None and not is_token_placeholder(match["code"]):
            yield SecretSpan(*match.span("code"), "recovery-key")


RULES: Sequence[Rule] = (
    Rule(("://",), _find_in_addresses),
    build_rule(_AUTHORIZATION, _accept_in_header, "authorization"),
    build_rule(_SCHEME_VALUE, _accept_after_scheme, "bearer", "basic"),
    Rule(("cookie", "-b '", "-b \"", "-b "), _find_cookies),
    Rule(
        ("backup code", "backup-code", "backupcode", "recovery code", "recovery-code", "scratch code",
         "wiederherstellungscode", "ersatzcode", "sicherungscode", "notfallcode", "emergency code",
         "codes de secours", "códigos de respaldo"),
        _find_codes,
    ),
    Rule(("filevault", "recovery key", "wiederherstellungsschlüssel"), _find_recovery_keys),
    Rule(
        ("log in", "login", "logged in", "log on", "logon", "sign in", "signed in", "connect as", "get in",
         "melde dich", "anmelden", "einloggen", "logge dich", "ssh "),
        _find_after_users,
    ),
    Rule(("anmelden", "einloggen", "log in", "login", "sign in"), _find_before_verbs),
    build_rule(_SLASHED, _accept_after_user, " / "),
    build_rule(_MAIL, _accept, "@"),
    build_rule(_WIFI, _accept_wifi_password, "wifi:"),
)  # fmt: skip
