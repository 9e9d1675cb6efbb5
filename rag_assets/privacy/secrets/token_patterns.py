"""Tokens without a prefix, found by a pattern inside the token or text next to it."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from rag_assets.privacy.secrets.placeholders import (
    DOCUMENTED,
    is_encoded_placeholder,
    is_token_placeholder,
)
from rag_assets.privacy.secrets.rules import Anchor, Rule
from rag_assets.privacy.secrets.spans import SecretSpan
from rag_assets.privacy.secrets.tokens import starts_token
from rag_assets.privacy.secrets.values import is_mixed, is_token_body

_PARTS_OF_BCRYPT = 3
_AWS_REACH = 120
_AWS_SLASHES = 6
_AWS_SECRET = re.compile(r"[A-Za-z0-9/+]{40,}={0,2}")
_AWS_SECRET_LENGTH = 40


def _around(name: str, anchors: str, before: str, after: str, reach: int) -> Rule:
    """Return the rule for a kind of token with two parts around its anchor.

    Args:
        name: the rule's name in reports.
        anchors: literals between the two parts, in lower case, separated by spaces.
        before: pattern of the part that ends with the anchor's first character.
        after: pattern of the anchor and the part after it.
        reach: maximum number of characters in the part before.
    """
    return Rule(
        tuple(anchors.split()),
        partial(_find_around, name, re.compile(before + r"\Z"), re.compile(after), reach),
    )


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


def _value(
    name: str, anchors: str, pattern: str, accepts: Callable[[str], bool] = is_token_body
) -> Rule:
    """Return the rule for a value after a literal; the pattern's first group is the credential."""
    return Rule(tuple(anchors.split()), partial(_find_value, name, re.compile(pattern), accepts))


def _find_value(
    name: str,
    pattern: re.Pattern[str],
    accepts: Callable[[str], bool],
    text: str,
    anchors: Sequence[Anchor],
) -> Iterator[SecretSpan]:
    done = 0
    for anchor in anchors:
        found = pattern.match(text, anchor.start) if anchor.start >= done else None
        if found is not None and accepts(found[1]):
            done = found.end(1)
            yield SecretSpan(*found.span(1), name)


def _is_pair(encoded: str) -> bool:
    """Return whether base64 encodes `user:password`."""
    try:
        user, colon, password = base64.b64decode(encoded + "=" * (-len(encoded) % 4)).partition(
            b":"
        )
    except (binascii.Error, ValueError):
        return False
    found = bool(user and colon and password) and (user + password).isascii()
    return found and not is_encoded_placeholder(encoded)


def _is_hash(value: str) -> bool:
    """Return whether a hash is not a placeholder: `$2a$10$abcdefghijklmnopqrstuv…`."""
    salted = value.rpartition("$")[2] if value.count("$") > _PARTS_OF_BCRYPT else value
    return value.lower() not in DOCUMENTED and not is_token_placeholder(salted)


def _is_written_hash(value: str) -> bool:
    return is_token_body(value) and _is_hash(value)


def _is_recovery_key(value: str) -> bool:
    """Return whether the groups of a key differ.

    A key such as `000000-000000-…` is a placeholder.
    """
    groups = value.split("-")
    return len(set(groups)) == len(groups) and any(len(set(group)) > 1 for group in groups)


_DISCORD = re.compile(r"[MNO][A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6,7}\.[A-Za-z0-9_-]{27,40}")


def _discord(text: str, _anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    for found in _DISCORD.finditer(text):
        if starts_token(text, found.start()) and is_mixed(found[0]):
            yield SecretSpan(*found.span(), "discord-token")


def _aws_secrets(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    """Find a word of forty base64 characters near a word about AWS."""
    for low, high in _windows(anchors, len(text)):
        for found in _AWS_SECRET.finditer(text, low, high):
            start, end = found.span()
            alone = end - start == _AWS_SECRET_LENGTH and starts_token(text, start)
            if not alone or is_token_placeholder(found[0]):
                continue
            if is_mixed(found[0]) and found[0].count("/") <= _AWS_SLASHES:
                yield SecretSpan(start, end, "aws-secret-access-key")


def _windows(anchors: Sequence[Anchor], length: int) -> Iterator[tuple[int, int]]:
    """Return the text spans around anchors, joined if they overlap, so each is searched once."""
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


def _azure_devops(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    """Find 52 base32 characters near words about Azure DevOps."""
    for low, high in _windows(anchors, len(text)):
        for found in _BASE32_WORD.finditer(text, low, high):
            if is_token_body(found[0]):
                yield SecretSpan(*found.span(), "azure-devops-token")


_GROUP = 6
_BITLOCKER = re.compile(r"(?<![\d-])\d{6}(?:-\d{6}){7}(?![\d-])")


def _bitlocker(text: str, anchors: Sequence[Anchor]) -> Iterator[SecretSpan]:
    """Find the recovery keys of BitLocker: eight groups of six digits."""
    for anchor in anchors:
        found = _BITLOCKER.match(text, max(0, anchor.start - _GROUP))
        if found is not None and _is_recovery_key(found[0]):
            yield SecretSpan(*found.span(), "bitlocker-key")


RULES: Sequence[Rule] = (
    Rule(tuple(f"-{digit}" for digit in "0123456789"), _bitlocker),
    _value("registry-auth", "auth", r"(?<![A-Za-z])_?auth[\"']?[ \t]*[:=][ \t]*[\"']?([A-Za-z0-9+/]{8,}={0,2})",
           _is_pair),
    Rule(("aws", "amazon", "secret access", "secret_access", "secretaccess", "akia", "asia"),
         _aws_secrets),
    Rule((), _discord),
    _around("azure-client-secret", "q~", r"(?<![A-Za-z0-9_~.-])[A-Za-z0-9_~.-]{3}\d",
            r"Q~[A-Za-z0-9_~.-]{30,36}(?<![.-])", 8),
    _around("mailchimp-key", "-us", r"(?<![A-Za-z0-9])[0-9a-f]{32}", r"-us\d{1,2}(?!\w)", 34),
    _around("telegram-token", ":aa", r"(?<![A-Za-z0-9])(?:bot)?\d{6,16}",
            r":AA[A-Za-z0-9_-]{32,34}(?![A-Za-z0-9])", 20),
    _around("terraform-token", ".atlasv1.", r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}",
            r"\.atlasv1\.[A-Za-z0-9_=-]{40,}", 16),
    _around("azure-devops-token", "azdo", r"(?<![A-Za-z0-9])[A-Za-z0-9]{76}", r"AZDO[A-Za-z0-9]{4}(?![A-Za-z0-9])", 78),
    Rule(("azure", "devops", "visualstudio", "nuget", "ado ", "pat ", "pat:", "pat="), _azure_devops),
    _value("azure-sas", "sig=", r"(?i:sig)=([A-Za-z0-9%+/_-]{40,}={0,2})"),
    _value("slack-webhook", "hooks.slack.com/",
           r"(?i:hooks\.slack\.com)/(?:services|workflows|triggers)/([A-Za-z0-9+/_-]{30,})"),
    _value("discord-webhook", "/api/webhooks/", r"/api/webhooks/(\d{15,22}/[A-Za-z0-9_-]{40,})"),
    _value("teams-webhook", "webhook.office.com/",
           r"(?i:webhook\.office\.com)/\w+/([A-Za-z0-9@/-]{60,})"),
    _value("zapier-webhook", "hooks.zapier.com/", r"(?i:hooks\.zapier\.com)/hooks/catch/(\d+/\w{5,})"),
    _value("password-hash", "$2a$ $2b$ $2y$", r"(\$2[aby]\$\d\d\$[A-Za-z0-9./]{53})",
           _is_written_hash),
    _value("password-hash", "$apr1$ $1$", r"(\$(?:apr1|1)\$[A-Za-z0-9./]{1,8}\$[A-Za-z0-9./]{22})",
           _is_written_hash),
    _value("password-hash", "$5$ $6$ $y$ $7$",
           r"(\$[567y]\$(?:rounds=\d+\$)?[A-Za-z0-9./]{1,24}(?:\$[A-Za-z0-9./]{1,24})?\$[A-Za-z0-9./]{40,90})",
           _is_written_hash),
    _value("password-hash", "$argon2",
           r"(\$argon2(?:id|i|d)(?:\$v=\d+)?\$m=\d+,t=\d+,p=\d+\$[A-Za-z0-9+/]{8,}\$[A-Za-z0-9+/]{20,})",
           _is_written_hash),
    _value("password-hash", "{ssha} {sha} {smd5} {ssha512}", r"\{[A-Za-z0-9]+\}([A-Za-z0-9+/]{20,}={0,2})",
           _is_written_hash),
    _value("password-hash", "pbkdf2_sha", r"(pbkdf2_sha\d+\$\d+\$[A-Za-z0-9]+\$[A-Za-z0-9+/]{30,}={0,2})",
           _is_written_hash),
)  # fmt: skip
