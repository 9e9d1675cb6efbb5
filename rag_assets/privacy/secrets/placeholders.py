"""Placeholders for credentials, as used in documentation."""

from __future__ import annotations

import base64
import re
from itertools import pairwise

from rag_assets.privacy.secrets.vocabulary import DOCUMENTED, WORDS, is_made_of_words

_FEW = 3
_DISTINCT = 6
_PARTS = (
    "...", "…", "xxxx", "****", "••••", "your-", "your_", "your ", "example.com", "placeholder",
    "insert-", "insert_", "environ", "getenv", "process.env", "change-me", "change_me", "changeme",
    "redacted]", "<redacted", "secrets.", "os.env",
)  # fmt: skip
_ENDS = ("_here", "-here", "here>", "_redacted", "-redacted", "_dummy", "-dummy")
_STARTS = ("urn:", "#/", "$$", "enc[", "dummy_", "dummy-", "arn:", "base64://", "vault:")
_NAMES = re.compile(
    r"(?:[a-z]+[-_.])+(?:\d{1,2}[-_])?(?:password|passwd|pass|pwd|secret|token|key|jwt)\d?|your[a-z]+"
)
_CAPITALS = frozenset("PASSWORD PASSWD PASS PWD SECRET TOKEN KEY APIKEY JWT".split())  # noqa: SIM905
_TOKEN_PARTS = (
    "xxxx", "your", "example", "placeholder", "redacted", "_here", "-here", "tokenhere", "keyhere", "...",
    "replace", "dummy", "goes-here", "insert-", "insert_", "***", "•••", "verylong", "abc123", "fake-", "fake_",
)  # fmt: skip
_RUN = 6
"""A generated value never contains this many equal characters in a row."""
_SEQUENCES = (
    "abcdefghijklmnopqrstuvwxyz",
    "01234567890",
    "zyxwvutsrqponmlkjihgfedcba",
    "9876543210",
)
_FOLLOWING = frozenset(pair for text in _SEQUENCES for pair in pairwise(text))
_SEQUENCE = 4
_SEQUENCE_SHARE = 0.7
_PERIOD, _LEAST_PERIODIC = 8, 16
_SEPARATORS = re.compile(r"[^A-Za-z0-9]+")
_BASE64 = re.compile(r"[A-Za-z0-9+/]{8,64}={0,2}")
_BRACKETED = re.compile(
    r"<[^<>]*>|\[[\w .:-]*\]|\{\{?[^{}]*\}\}?|\(\(?[\w .:-]*\)\)?|%[A-Za-z_]\w*%|%\(\w+\)s|%[sdvq](?:\\[rn])*|%{1,2}[\w().:]+%{1,2}|\$\w+\$|\{\w+\}[a-z]+"
    r"|__?[A-Z][A-Z_]+__?|@@?\w+@@?"
)
_VARIABLE = re.compile(
    r"%%[A-Z]|[$#%!]\{|\{\{|\{%|<%|\$\(|\$(?:[A-Z_][A-Z0-9_]*|[a-z_][A-Za-z_]*\d{0,2})(?:$|[-/@,;)>\[.:])|\$\d$|&lt;|#\{"
)
_MENTIONED = re.compile(r"<[A-Za-z][\w .:|-]*>|\$\{\w|\{\{|#\{\w")
_ESCAPED_LETTERS = re.compile(r"(?:\\u[0-9a-fA-F]{4}){2,}")
_EXPRESSION = re.compile(r"\^.*\$|.*\[(?:0-9|a-z|A-Z|\^).*\].*|[A-Za-z]+\[[\w., \[\]]+\]")


def is_placeholder(value: str) -> bool:
    """Return whether a value is a placeholder: `$VAR`, `<your-password>`, `changeme`, `****`."""
    bare = value.strip("\"'`“”‘’«» \t")
    lowered = bare.strip("()[]{}.,;:!?*_").lower()
    if not lowered:
        return len(set(bare)) <= _FEW
    if bare.endswith(("...", "…")) or bare.lower().startswith(_STARTS):
        return True
    return _is_reference(bare) or _is_description(lowered) or is_encoded_placeholder(bare)


def _is_reference(bare: str) -> bool:
    """Return whether a value refers to another one: a variable, a template, a name in brackets."""
    if _VARIABLE.match(bare) or _MENTIONED.search(bare) or _ESCAPED_LETTERS.search(bare):
        return True
    if any(form.fullmatch(bare) for form in (_BRACKETED, _EXPRESSION, _NAMES)):
        return True
    parts = bare.split("_")
    return len(parts) > 1 and bare.isupper() and bare.isascii() and not _CAPITALS.isdisjoint(parts)


def _is_description(lowered: str) -> bool:
    """Return whether a value describes what to fill in, or repeats one or two characters."""
    if len(set(lowered)) < _FEW or is_made_of_words(lowered) or lowered.endswith(_ENDS):
        return True
    if (
        "example" in lowered
        or is_documented(lowered)
        or (len(lowered) >= _LEAST_PERIODIC and has_placeholder_shape(lowered))
    ):
        return True
    if "." in lowered and all(len(set(part)) == 1 for part in lowered.split(".")):
        return True
    if "|" in lowered and lowered.partition("|")[0] in WORDS:
        return True
    return any(part in lowered for part in _PARTS)


def is_token_placeholder(body: str) -> bool:
    """Return whether the part of a token after its prefix is a placeholder: `ghp_xxxxxxxx`."""
    lowered = body.lower()
    if len(set(lowered)) < _DISTINCT or any(part in lowered for part in _TOKEN_PARTS):
        return True
    return has_placeholder_shape(lowered)


def has_placeholder_shape(lowered: str) -> bool:
    """Return whether a long value repeats characters or follows an alphabet.

    Args:
        lowered: the value in lower case.
    """
    if is_documented(lowered):
        return True
    plain = _SEPARATORS.sub("", lowered)
    return _repeats(plain) or _counts(plain)


def is_documented(lowered: str) -> bool:
    """Return whether a lower-case value, or a part of it, is a published example."""
    parts = (lowered.rstrip("="), lowered.rpartition("_")[2], *lowered.split("."))
    return any(part in DOCUMENTED for part in parts)


def is_encoded_placeholder(value: str) -> bool:
    """Return whether base64 encodes a placeholder, perhaps with a user: `dXNlcjpwYXNzd29yZA==`."""
    if not _BASE64.fullmatch(value):
        return False
    try:
        text = base64.b64decode(value + "=" * (-len(value) % 4)).decode("ascii")
    except ValueError:
        return False
    password = text.strip().rpartition(":")[2].lower()
    return password.isprintable() and bool(password) and _is_description(password)


def _repeats(plain: str) -> bool:
    """Return whether a character occurs many times in a row, or the text repeats its start."""
    run = 1
    for before, after in pairwise(plain):
        run = run + 1 if before == after else 1
        if run >= _RUN:
            return True
    if len(plain) < _LEAST_PERIODIC:
        return False
    return any(
        plain[period:] == plain[:-period] for period in range(1, min(_PERIOD, len(plain) // 2) + 1)
    )


def _counts(plain: str) -> bool:
    """Return whether most of a text follows an alphabet: `1234567890abcdef`."""
    covered, run = 0, 1
    for pair in [*pairwise(plain), ("", "")]:
        if pair in _FOLLOWING:
            run += 1
            continue
        covered += run if run >= _SEQUENCE else 0
        run = 1
    return covered >= max(_SEQUENCE + 1, _SEQUENCE_SHARE * len(plain))
